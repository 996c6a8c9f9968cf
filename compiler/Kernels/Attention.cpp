// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention, one block of queries at a time, with the queries in the vector lanes: scores
// S[k, q] into scratch while the maxima are taken, exponentials and their sums vertically,
// then O[e, q] from the exponentials and the values, divided at the end. Keys and values
// are broadcast scalar by scalar where they lie, so no layout needs a transposed copy.
#include "compiler/Kernels/AttentionMask.h"
#include "compiler/Kernels/Emitters.h"
#include "compiler/Kernels/Epilogue.h"
#include "compiler/Kernels/RegisterTile.h"
#include "compiler/Kernels/StoredIndex.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// A sequence of tokens as one or two loop variables: its tile, and the place in the tile.
struct Sequence {
  AffineExpr tile, inner, token;
  int64_t length = 0, tileSize = 0;
};

class Attention {
public:
  Attention(KernelFunction &kernel, AttentionOp op)
      : kernel(kernel), builder(kernel.builder), loc(op.getLoc()), op(op), space(op.getContext()),
        point(kernel.pointEmitter(space)) {}

  LogicalResult match();
  void emit();

private:
  /// An index of these last two dims in this grid cell's batch.
  Index at(AffineExpr token, AffineExpr last) const {
    Index index(batch);
    index.append({token, last});
    return index;
  }
  std::optional<TileOperand> operandAt(Value tensor, AffineExpr token, AffineExpr feature);
  Sequence splitSequence(RankedTensorType type, int64_t tokenDim);

  void emitBlock();
  TileOperand queryVectors();
  SmallVector<Value> emitScores();
  SmallVector<Value> emitExponentials(ArrayRef<Value> maxima);
  void emitOutput(ArrayRef<Value> sums);
  void storeRoot(const EpilogueRoot &root);

  /// Loop over the keys that this block sees, `rows` at a time and then one by one.
  SmallVector<Value> keyLoop(int64_t rows, ArrayRef<Value> carried,
                             llvm::function_ref<SmallVector<Value>(int64_t, ArrayRef<Value>)> body);
  Value scoreAddress(Value token, int64_t group);
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value splat(double value) {
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(vectorType, Attribute(builder.getFloatAttr(element, value))));
  }
  Value valueOf(AffineExpr dim) { return point.indexValue(dim); }
  void set(AffineExpr dim, Value value) {
    if (auto variable = dyn_cast<AffineDimExpr>(dim))
      point.setDim(variable.getPosition(), value);
  }
  int64_t extentOf(AffineExpr dim) const {
    auto variable = dyn_cast<AffineDimExpr>(dim);
    return variable ? space.extent(variable.getPosition()) : 1;
  }
  SmallVector<Value> zeros(int64_t rows) { return SmallVector<Value>(rows * groups, splat(0.0)); }

  KernelFunction &kernel;
  OpBuilder &builder;
  Location loc;
  AttentionOp op;
  IndexSpace space;
  PointEmitter point;

  Type element;
  VectorType vectorType;
  int64_t width = 1, groups = 1, rows = 4;
  Index batch;
  SmallVector<unsigned> gridDims;
  Sequence queries, keys;
  AffineExpr queryBlock, lane, feature, valueFeature;
  std::optional<TileOperand> query, key, value;
  Index resultIndex; ///< physical, before the epilogue
  SmallVector<EpilogueRoot> roots;
  Value scores;        ///< scratch, [key][lanes]
  Value packedQueries; ///< scratch, [feature][lanes], when the queries are not in lanes
  Value keyEnd;        ///< first key that no query of this block sees
};

} // namespace

Sequence Attention::splitSequence(RankedTensorType type, int64_t tokenDim) {
  LayoutAttr layout = layoutOf(type);
  Sequence sequence;
  sequence.length = type.getDimSize(tokenDim);
  bool tiled = layout && layout.getTileDim() == tokenDim;
  sequence.tileSize = tiled ? layout.getTileSize() : sequence.length;
  int64_t tiles = llvm::divideCeil(sequence.length, sequence.tileSize);
  sequence.tile = tiles > 1 ? space.addDim(tiles) : space.constant(0);
  sequence.inner = space.addDim(sequence.tileSize);
  sequence.token = space.simplify(sequence.tile * sequence.tileSize + sequence.inner);
  return sequence;
}

std::optional<TileOperand> Attention::operandAt(Value tensor, AffineExpr token,
                                                AffineExpr featureExpr) {
  Index index;
  std::tie(tensor, index) = storedAt(tensor, at(token, featureExpr), space);
  while (auto view = throughView(tensor, index, space))
    std::tie(tensor, index) = *view;
  if (tensor.getDefiningOp())
    return std::nullopt;
  return TileOperand{point.getBuffer(tensor)->flat,
                     space.linearize(index, cast<RankedTensorType>(tensor.getType()).getShape())};
}

LogicalResult Attention::match() {
  auto queryType = cast<RankedTensorType>(op.getQuery().getType());
  auto keyType = cast<RankedTensorType>(op.getKey().getType());
  auto valueType = cast<RankedTensorType>(op.getValue().getType());
  element = queryType.getElementType();
  if ((!element.isF32() && !element.isF64()) || keyType.getElementType() != element)
    return failure();
  int64_t rank = queryType.getRank();
  for (int64_t size : queryType.getShape().drop_back(2)) {
    batch.push_back(size == 1 ? space.constant(0) : space.addDim(size));
    if (size != 1)
      gridDims.push_back(space.size() - 1);
  }
  width = kernel.target.lanes(element.getIntOrFloatBitWidth());
  vectorType = VectorType::get({width}, element);

  // Queries: block of lanes; a tile of the layout may hold several blocks.
  int64_t length = queryType.getDimSize(rank - 2);
  LayoutAttr layout = layoutOf(queryType);
  bool tiled = layout && layout.getTileDim() == rank - 2;
  int64_t tileSize = tiled ? layout.getTileSize() : llvm::alignTo(length, width);
  groups = std::min<int64_t>(kernel.target.vectorRegisters >= 32 ? 4 : 2,
                             llvm::divideCeil(tileSize, width));
  while (tiled && tileSize % (groups * width))
    --groups;
  if (!groups)
    return failure();
  int64_t lanes = groups * width;
  rows = std::clamp<int64_t>((kernel.target.vectorRegisters - 1 - groups) / groups, 1,
                             groups == 4 ? 4 : 8);
  queries.length = length;
  queries.tileSize = tiled ? tileSize : lanes;
  int64_t tiles = llvm::divideCeil(length, queries.tileSize);
  auto dimOf = [&](int64_t extent) {
    if (extent == 1)
      return space.constant(0);
    AffineExpr dim = space.addDim(extent);
    gridDims.push_back(space.size() - 1);
    return dim;
  };
  queries.tile = dimOf(tiles);
  queryBlock = dimOf(queries.tileSize / lanes);
  lane = space.addDim(lanes);
  queries.token = space.simplify(queries.tile * queries.tileSize + queryBlock * lanes + lane);
  keys = splitSequence(keyType, rank - 2);
  feature = space.addDim(queryType.getDimSize(rank - 1));
  valueFeature = space.addDim(valueType.getDimSize(rank - 1));

  query = operandAt(op.getQuery(), queries.token, feature);
  key = operandAt(op.getKey(), keys.token, feature);
  // Values may be tiled otherwise than keys; positions must stay linear in the key's dims.
  value = operandAt(op.getValue(), keys.token, valueFeature);
  if (!query || !key || !value)
    return failure();
  auto linear = [&](AffineExpr expr, AffineExpr dim) {
    auto variable = dyn_cast<AffineDimExpr>(dim);
    return !variable || space.coefficientOf(expr, variable.getPosition()).has_value();
  };
  for (AffineExpr dim : {keys.tile, keys.inner})
    if (!linear(key->position, dim) || !linear(value->position, dim))
      return failure();
  if (!linear(key->position, feature) || !linear(value->position, valueFeature))
    return failure();

  auto resultType = cast<RankedTensorType>(op.getResult().getType());
  resultIndex = physicalIndex(resultType, at(queries.token, valueFeature), space);
  Value result = op.getResult();
  if (op->hasOneUse() && isa<UnrealizedConversionCastOp>(*op->getUsers().begin()))
    result = op->getUsers().begin()->getResult(0);
  auto found = epilogueRoots(kernel, result, resultIndex, space);
  if (failed(found) || found->size() != kernel.roots.size())
    return failure();
  roots = *found;
  return success();
}

void Attention::emit() {
  int64_t lanes = groups * width;
  int64_t tiles = extentOf(keys.tile);
  scores = kernel.scratch(element, tiles * keys.tileSize * lanes);
  unsigned laneDim = cast<AffineDimExpr>(lane).getPosition();
  // Queries beside one another in memory are read as they lie, unless lanes would leave it.
  LayoutAttr layout = layoutOf(cast<RankedTensorType>(op.getQuery().getType()));
  bool whole = (layout && layout.hasTile()) || queries.length % lanes == 0;
  if (!whole || space.coefficientOf(query->position, laneDim) != 1)
    packedQueries = kernel.scratch(element, extentOf(feature) * lanes);

  int64_t cells = 1;
  for (unsigned dim : gridDims)
    cells *= space.extent(dim);
  int64_t flops = 2 * cells * lanes * keys.length * (extentOf(feature) + extentOf(valueFeature));
  if (op.getCausal())
    flops /= 2;
  bool serial = flops < 400'000;
  auto [low, high] = kernel.share(cells, serial);
  emitLoop(builder, loc, low, high, 1, {}, [&](Value cell, ValueRange) {
    Value rest = cell;
    for (size_t i = gridDims.size(); i-- > 0;) {
      Value size = constant(space.extent(gridDims[i]));
      point.setDim(gridDims[i],
                   i == 0 ? rest : arith::RemUIOp::create(builder, loc, rest, size).getResult());
      if (i > 0)
        rest = arith::DivUIOp::create(builder, loc, rest, size);
    }
    emitBlock();
    return SmallVector<Value>();
  });
  kernel.setWork(flops, serial);
  kernel.setSchedule({{"rows", rows}, {"groups", groups}, {"lanes", width}});
}

void Attention::emitBlock() {
  set(lane, constant(0));
  unsigned laneDim = cast<AffineDimExpr>(lane).getPosition();
  int64_t lanes = groups * width;
  point.setLanes({static_cast<int64_t>(laneDim), width, groups, lanes});
  keyEnd = constant(keys.length);
  if (op.getCausal()) {
    Value first = valueOf(queries.token);
    Value end = arith::AddIOp::create(builder, loc, first, constant(lanes));
    keyEnd = arith::MinUIOp::create(builder, loc, end, keyEnd);
  }
  if (packedQueries)
    emitLoop(builder, loc, 0, extentOf(feature), 1, {}, [&](Value variable, ValueRange) {
      set(feature, variable);
      point.forget();
      auto [source, index] = storedAt(op.getQuery(), at(queries.token, feature), space);
      Emitted vectors = point.emitAt(source, index);
      for (auto [group, vector] : llvm::enumerate(point.asVectors(vectors))) {
        Value address = arith::MulIOp::create(builder, loc, variable, constant(lanes));
        address = arith::AddIOp::create(builder, loc, address, constant(group * width));
        vector::StoreOp::create(builder, loc, vector, packedQueries, address);
      }
      return SmallVector<Value>();
    });
  SmallVector<Value> maxima = emitScores();
  SmallVector<Value> sums = emitExponentials(maxima);
  emitOutput(sums);
}

TileOperand Attention::queryVectors() {
  if (!packedQueries)
    return *query;
  return {packedQueries, feature * (groups * width) + lane};
}

Value Attention::scoreAddress(Value token, int64_t group) {
  Value address = arith::MulIOp::create(builder, loc, token, constant(groups * width));
  return arith::AddIOp::create(builder, loc, address, constant(group * width));
}

SmallVector<Value>
Attention::keyLoop(int64_t step, ArrayRef<Value> carried,
                   llvm::function_ref<SmallVector<Value>(int64_t, ArrayRef<Value>)> body) {
  auto inner = [&](Value count, ArrayRef<Value> now) {
    Value whole = constant(0);
    SmallVector<Value> values(now);
    auto loop = [&](Value from, Value to, int64_t size) {
      values = emitLoop(builder, loc, from, to, size, values, [&](Value variable, ValueRange v) {
        set(keys.inner, variable);
        point.forget();
        return body(size, SmallVector<Value>(v));
      });
    };
    if (step > 1) {
      Value size = constant(step);
      Value blocks = arith::DivUIOp::create(builder, loc, count, size);
      Value end = arith::MulIOp::create(builder, loc, blocks, size);
      loop(whole, end, step);
      whole = end;
      bool exact =
          !op.getCausal() && keys.length % keys.tileSize % step == 0 && keys.tileSize % step == 0;
      if (exact)
        return values;
    }
    loop(whole, count, 1);
    return values;
  };
  if (!isa<AffineDimExpr>(keys.tile))
    return inner(keyEnd, carried);
  Value size = constant(keys.tileSize);
  Value tiles = arith::CeilDivUIOp::create(builder, loc, keyEnd, size);
  return emitLoop(builder, loc, constant(0), tiles, 1, carried, [&](Value tile, ValueRange now) {
    set(keys.tile, tile);
    Value start = arith::MulIOp::create(builder, loc, tile, size);
    Value left = arith::SubIOp::create(builder, loc, keyEnd, start);
    Value count = arith::MinUIOp::create(builder, loc, left, size);
    return inner(count, SmallVector<Value>(now));
  });
}

SmallVector<Value> Attention::emitScores() {
  SmallVector<Value> lowest(groups, splat(-std::numeric_limits<double>::infinity()));
  unsigned keyDim = cast<AffineDimExpr>(keys.inner).getPosition();
  int64_t keyStride = *space.coefficientOf(key->position, keyDim);
  return keyLoop(rows, lowest, [&](int64_t count, ArrayRef<Value> maxima) {
    SmallVector<Value> sums =
        emitLoop(builder, loc, 0, extentOf(feature), 1, zeros(count), [&](Value d, ValueRange now) {
          set(feature, d);
          return emitTileStep(point, *key, keyStride, queryVectors(), count,
                              SmallVector<Value>(now));
        });
    SmallVector<Value> next(maxima);
    Value first = valueOf(keys.inner);
    for (int64_t i = 0; i < count; ++i) {
      set(keys.inner, arith::AddIOp::create(builder, loc, first, constant(i)));
      point.forget();
      SmallVector<Value> masked = maskScores(op, point, at(queries.token, keys.token),
                                             ArrayRef(sums).slice(i * groups, groups));
      Value token = valueOf(keys.token);
      for (int64_t group = 0; group < groups; ++group) {
        vector::StoreOp::create(builder, loc, masked[group], scores, scoreAddress(token, group));
        next[group] = arith::MaximumFOp::create(builder, loc, next[group], masked[group]);
      }
    }
    set(keys.inner, first);
    return next;
  });
}

SmallVector<Value> Attention::emitExponentials(ArrayRef<Value> maxima) {
  // Queries that see no key have the maximum -inf: exp(-inf - 0) leaves zeros, not NaN.
  SmallVector<Value> shifts;
  Value hidden = splat(-std::numeric_limits<double>::infinity());
  for (Value maximum : maxima) {
    Value none = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, maximum, hidden);
    shifts.push_back(arith::SelectOp::create(builder, loc, none, splat(0.0), maximum));
  }
  return keyLoop(1, zeros(1), [&](int64_t, ArrayRef<Value> sums) {
    SmallVector<Value> next;
    Value token = valueOf(keys.token);
    for (int64_t group = 0; group < groups; ++group) {
      Value address = scoreAddress(token, group);
      Value score = vector::LoadOp::create(builder, loc, vectorType, scores, address);
      Value shifted = arith::SubFOp::create(builder, loc, score, shifts[group]);
      Value power = math::ExpOp::create(builder, loc, shifted);
      vector::StoreOp::create(builder, loc, power, scores, address);
      next.push_back(arith::AddFOp::create(builder, loc, sums[group], power));
    }
    return next;
  });
}

/// Lanes behind the last query have no place of their own where dims have been merged.
void Attention::storeRoot(const EpilogueRoot &root) {
  const Buffer &buffer = kernel.rootBuffers[root.number];
  auto value = [&] { return point.emitAt(kernel.roots[root.number], root.index); };
  bool exact = space.rangeOf(queries.token).second < queries.length;
  if (exact || root.index == resultIndex)
    point.store(buffer, root.index, value());
  else
    point.storeWithin(queries.token, queries.length, buffer, root.index, value);
}

void Attention::emitOutput(ArrayRef<Value> sums) {
  SmallVector<Value> factors;
  for (Value sum : sums) {
    Value empty = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, sum, splat(0.0));
    Value inverse = arith::DivFOp::create(builder, loc, splat(1.0), sum);
    factors.push_back(arith::SelectOp::create(builder, loc, empty, splat(0.0), inverse));
  }
  unsigned rowDim = cast<AffineDimExpr>(valueFeature).getPosition();
  int64_t rowStride = *space.coefficientOf(value->position, rowDim);
  TileOperand weights{scores, keys.token * (groups * width) + lane};
  auto tile = [&](int64_t count) {
    SmallVector<Value> products = keyLoop(1, zeros(count), [&](int64_t, ArrayRef<Value> now) {
      return emitTileStep(point, *value, rowStride, weights, count, now);
    });
    Value first = valueOf(valueFeature);
    for (int64_t i = 0; i < count; ++i) {
      set(valueFeature, arith::AddIOp::create(builder, loc, first, constant(i)));
      point.forget();
      Emitted result{{}, false};
      for (int64_t group = 0; group < groups; ++group)
        result.parts.push_back(
            arith::MulFOp::create(builder, loc, products[i * groups + group], factors[group]));
      Value product = op.getResult();
      point.setOverride([&](PointEmitter &, Value tensor,
                            ArrayRef<AffineExpr>) -> std::optional<Emitted> {
        bool here = tensor == product || (tensor.getDefiningOp() &&
                                          isa<UnrealizedConversionCastOp>(tensor.getDefiningOp()) &&
                                          tensor.getDefiningOp()->getOperand(0) == product);
        return here ? std::optional<Emitted>(result) : std::nullopt;
      });
      for (const EpilogueRoot &root : roots)
        storeRoot(root);
      point.setOverride(nullptr);
    }
    set(valueFeature, first);
  };
  int64_t extent = extentOf(valueFeature);
  int64_t whole = extent / rows * rows;
  emitLoop(builder, loc, 0, whole, rows, {}, [&](Value variable, ValueRange) {
    set(valueFeature, variable);
    tile(rows);
    return SmallVector<Value>();
  });
  emitLoop(builder, loc, whole, extent, 1, {}, [&](Value variable, ValueRange) {
    set(valueFeature, variable);
    tile(1);
    return SmallVector<Value>();
  });
}

LogicalResult weft::emitAttention(KernelFunction &kernel) {
  auto ops = kernel.source.getOps<AttentionOp>();
  if (std::distance(ops.begin(), ops.end()) != 1)
    return failure();
  Attention attention(kernel, *ops.begin());
  if (failed(attention.match()))
    return failure();
  attention.emit();
  return success();
}
