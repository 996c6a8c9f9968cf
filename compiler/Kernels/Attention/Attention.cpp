// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention, by blocks of queries, with queries in vector lanes. For each block of keys: scores
// S[k, q] to scratch with running maxima, exponentials and their sums, then O[e, q] += exponentials
// * values. With several key blocks, sums and O are rescaled when a maximum grows (M. Milakov and
// N. Gimelshein, "Online normalizer calculation for softmax", 2018). O is divided by the sums last.
// Keys and values are broadcast from their original layout, so none needs a transposed copy.
#include "compiler/Kernels/Attention/AttentionMask.h"
#include "compiler/Kernels/Attention/AttentionOutput.h"
#include "compiler/Kernels/Attention/AttentionSchedule.h"
#include "compiler/Kernels/Attention/CausalKeyRanges.h"
#include "compiler/Kernels/Attention/QueryPacking.h"
#include "compiler/Kernels/Attention/SoftmaxExponentials.h"
#include "compiler/Kernels/Emission/RegisterTile.h"
#include "compiler/Kernels/Emission/StoredIndex.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// A sequence of tokens as one or two loop variables: the tile of tokens and the position within
/// it.
struct Sequence {
  AffineExpr tile, inner, token;
};

class Attention : private IndexArithmetic {
public:
  Attention(KernelFunction &kernel, AttentionOp op)
      : IndexArithmetic(kernel.builder, op.getLoc()), kernel(kernel), op(op),
        space(op.getContext()), point(kernel.elementEmitter(space)),
        queryVectors(kernel, point, op), result(kernel, point, op) {}

  LogicalResult match();
  void emit();

private:
  /// The full index in this grid cell's batch, from its last two dims.
  Index at(AffineExpr token, AffineExpr last) const {
    Index index(batch);
    index.append({token, last});
    return index;
  }
  bool isLinear(AffineExpr expr, ArrayRef<AffineExpr> dims) const;

  int64_t slots();
  Value setCell(Value number);
  Value blockCounts();
  void emitQueryBlock(Value number);
  void emitWholeBlock(Value number);
  void emitVectors(int64_t count);
  SmallVector<Value> emitSoftmax();
  SmallVector<Value> emitKeyBlock(ArrayRef<Value> state, bool rescale, KeyBlock runs);
  SmallVector<Value> emitScores(ArrayRef<Value> maxima, KeyBlock runs);
  SmallVector<Value> emitScoreTile(const KeyRun &run, Value offset, int64_t count,
                                   ArrayRef<Value> maxima);
  SmallVector<Value> emitExponentials(ArrayRef<Value> shifts, KeyBlock runs);
  void emitOutput(ArrayRef<Value> factors, KeyBlock runs);

  /// The point is at key `offset` of `run`, with the queries that see it in the lanes.
  void setKey(const KeyRun &run, Value offset);
  /// Loop with a peeled tail over `total`, a constant extent.
  SmallVector<Value>
  steps(int64_t total, int64_t step, ArrayRef<Value> carried,
        llvm::function_ref<SmallVector<Value>(Value, int64_t, ArrayRef<Value>)> body) {
    return emitSteps(builder, loc, constant(total), total, step, carried, body);
  }
  SmallVector<Value>
  keySteps(const KeyRun &run, int64_t step, ArrayRef<Value> carried,
           llvm::function_ref<SmallVector<Value>(Value, int64_t, ArrayRef<Value>)> body) {
    return emitSteps(builder, loc, run.count, problem.keys, step, carried, body);
  }

  Value splat(double value) { return emitSplat(builder, loc, vectorType, value); }
  Value multiply(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
  Value fma(Value a, Value b, Value c) { return vector::FMAOp::create(builder, loc, a, b, c); }
  Value valueOf(AffineExpr dim) { return point.indexValue(dim); }
  void set(AffineExpr dim, Value value) {
    if (auto variable = dyn_cast<AffineDimExpr>(dim))
      point.setDim(variable.getPosition(), value);
  }
  unsigned dimOf(AffineExpr dim) const { return cast<AffineDimExpr>(dim).getPosition(); }
  int64_t extentOf(AffineExpr dim) const { return space.extent(dimOf(dim)); }
  void setQueryLanes(int64_t firstGroup = 0) {
    set(lane, constant(firstGroup * schedule.width));
    int64_t count = groups - firstGroup;
    point.setLanes({dimOf(lane), schedule.width, count, count * schedule.width});
  }

  KernelFunction &kernel;
  AttentionOp op;
  IndexSpace space;
  ElementEmitter point;

  Type element;
  VectorType vectorType;
  AttentionProblem problem;
  AttentionSchedule schedule;
  Index batch;
  SmallVector<unsigned> batchDims;
  Sequence queries, keys;
  AffineExpr lane, slot, feature, valueFeature;
  int64_t queryBlocks = 1; ///< of one batch
  int64_t groups = 1;      ///< vectors of queries in the current block
  QueryPacking queryVectors;
  std::optional<TileOperand> key, value;
  AttentionOutput result;
  std::optional<AttentionMask> mask;
  std::optional<SoftmaxExponentials> powers;
  bool rawScores = false;           ///< scores in scratch are unscaled
  std::optional<RowScratch> scores; ///< a row per slot
  std::optional<RowScratch> output; ///< a row per value feature
};

} // namespace

bool Attention::isLinear(AffineExpr expr, ArrayRef<AffineExpr> dims) const {
  return llvm::all_of(dims, [&](AffineExpr dim) {
    return !isa<AffineDimExpr>(dim) || space.coefficientOf(expr, dimOf(dim)).has_value();
  });
}

LogicalResult Attention::match() {
  auto queryType = cast<RankedTensorType>(op.getQuery().getType());
  auto keyType = cast<RankedTensorType>(op.getKey().getType());
  element = queryType.getElementType();
  if ((!element.isF32() && !element.isF64()) || keyType.getElementType() != element)
    return failure();
  problem = AttentionProblem::of(op);
  schedule = readFields<AttentionSchedule>(kernel.schedule.getParts().front());
  if (schedule.keyBlock % schedule.keyTile != 0)
    return kernel.refuse() << "expected key_block to be a multiple of " << schedule.keyTile
                           << ", found " << schedule.keyBlock;
  vectorType = VectorType::get({schedule.width}, element);

  auto loopOver = [&](int64_t extent) {
    return extent == 1 ? space.constant(0) : space.addDim(extent);
  };
  for (int64_t size : queryType.getShape().drop_back(2)) {
    batch.push_back(loopOver(size));
    if (size != 1)
      batchDims.push_back(space.size() - 1);
  }
  int64_t lanes = schedule.lanes();
  int64_t tileSize = problem.queryTile ? problem.queryTile : lanes;
  queries.tile = loopOver(llvm::divideCeil(problem.queries, tileSize));
  queries.inner = loopOver(tileSize / lanes);
  queryBlocks = llvm::divideCeil(problem.queries, lanes);
  lane = space.addDim(lanes);
  queries.token = space.simplify(queries.tile * tileSize + queries.inner * lanes + lane);
  keys.tile = loopOver(llvm::divideCeil(problem.keys, schedule.keyTile));
  keys.inner = space.addDim(schedule.keyTile);
  keys.token = space.simplify(keys.tile * schedule.keyTile + keys.inner);
  slot = space.addDim(slots());
  feature = space.addDim(problem.features);
  valueFeature = space.addDim(problem.valueFeatures);

  key = storedOperand(point, op.getKey(), at(keys.token, feature));
  // Values may have another layout than keys; positions must be linear in the key's dims.
  value = storedOperand(point, op.getValue(), at(keys.token, valueFeature));
  if (failed(queryVectors.match(at(queries.token, feature), lane, feature)) || !key || !value ||
      !isLinear(key->position, {keys.tile, keys.inner, feature}) ||
      !isLinear(value->position, {keys.tile, keys.inner, valueFeature}))
    return failure();

  bool adds = op.getMask() && !getElementTypeOrSelf(op.getMask().getType()).isInteger(1);
  bool replaces = op.getMask() && op.getHiddenScore() && op.getHiddenScore()->isFinite();
  double scale = op.getScale().convertToDouble();
  rawScores = element.isF32() && !adds && !replaces && scale > 0;
  if (rawScores)
    powers.emplace(builder, loc, vectorType, scale);
  else
    powers.emplace(builder, loc, vectorType);

  AttentionOutput::Dims dims{queries.token, {queries.tile, queries.inner, lane}, valueFeature};
  return result.match(at(queries.token, valueFeature), dims);
}

void Attention::emit() {
  int64_t lanes = schedule.lanes();
  auto rows = [&](std::optional<RowScratch> &scratch, int64_t count) {
    scratch.emplace(kernel, loc, vectorType, schedule.groups, count);
  };
  rows(scores, slots());
  rows(output, problem.valueFeatures);
  queryVectors.reserve(vectorType, schedule.groups,
                       problem.queryTile || problem.queries % lanes == 0);

  int64_t cells = queryBlocks * space.count(batchDims);
  kernel.forEachPiece(cells, schedule.claim, [&](Value cell) {
    Value block = setCell(cell);
    if (Value counts = blockCounts())
      emitIf(builder, loc, counts, [&] { emitQueryBlock(block); });
    else
      emitQueryBlock(block);
  });
  kernel.setWork(problem.flops());
}

/// Rows of scores in scratch: the keys of one block; if causal, at least those of the diagonal.
int64_t Attention::slots() {
  return op.getCausal() ? std::max(schedule.keyBlock, schedule.lanes()) : schedule.keyBlock;
}

/// Moves the point to the block of queries of cell `number`; returns the number of the block.
Value Attention::setCell(Value number) {
  auto split = [&](int64_t size) {
    Value rest = remainderOf(number, size);
    number = dividedBy(number, size);
    return rest;
  };
  Value block = split(queryBlocks);
  for (unsigned dim : llvm::reverse(batchDims))
    point.setDim(dim, split(space.extent(dim)));
  // Later causal blocks see more keys: alternate early and late blocks, to balance contiguous
  // partitions.
  if (op.getCausal()) {
    Value half = dividedBy(block, 2);
    Value odd = remainderOf(block, 2);
    Value fromEnd = subtract(constant(queryBlocks - 1), half);
    Value isEven = is(arith::CmpIPredicate::eq, odd, constant(0));
    block = arith::SelectOp::create(builder, loc, isEven, half, fromEnd);
  }
  int64_t inTile = isa<AffineDimExpr>(queries.inner) ? extentOf(queries.inner) : 1;
  set(queries.tile, dividedBy(block, inTile));
  set(queries.inner, remainderOf(block, inTile));
  return block;
}

/// Whether any query of the block at the point counts; null if all do.
Value Attention::blockCounts() {
  if (kernel.bound().empty())
    return {};
  Value counts;
  auto alsoBefore = [&](Value place, int64_t symbol) {
    Value before = is(arith::CmpIPredicate::ult, place, kernel.sizeOf(symbol));
    counts = counts ? arith::AndIOp::create(builder, loc, counts, before) : before;
  };
  set(lane, constant(0));
  point.forget();
  if (int64_t symbol = kernel.bound()[0]; symbol >= 0)
    alsoBefore(valueOf(queries.token), symbol);
  if (int64_t symbol = kernel.bound()[1]; symbol >= 0)
    alsoBefore(valueOf(batch.front()), symbol);
  return counts;
}

/// The last block may have fewer vectors of queries, and so has that with the last one that counts.
void Attention::emitQueryBlock(Value number) {
  if (kernel.bound().empty() || kernel.bound()[0] < 0 || queryBlocks == 1)
    return emitWholeBlock(number);
  Value end = kernel.sizeOf(kernel.bound()[0]), first = valueOf(queries.token);
  SmallVector<int64_t> sizes;
  for (int64_t fewer = 1; fewer < schedule.groups; fewer *= 2)
    sizes.push_back(fewer * schedule.width);
  sizes.push_back(schedule.lanes());
  emitForCount(builder, loc, subtract(end, least(first, end)), sizes, [&](int64_t enough) {
    if (enough == schedule.lanes())
      emitWholeBlock(number);
    else
      emitVectors(enough / schedule.width);
  });
}

void Attention::emitWholeBlock(Value number) {
  int64_t inLast =
      llvm::divideCeil(problem.queries - (queryBlocks - 1) * schedule.lanes(), schedule.width);
  if (inLast == schedule.groups || queryBlocks == 1)
    return emitVectors(inLast);
  emitIf(
      builder, loc, is(arith::CmpIPredicate::eq, number, constant(queryBlocks - 1)),
      [&] { emitVectors(inLast); }, [&] { emitVectors(schedule.groups); });
}

void Attention::emitVectors(int64_t count) {
  groups = count;
  point.forget();
  setQueryLanes();
  queryVectors.pack();
  setQueryLanes();
  set(keys.tile, constant(0));
  set(keys.inner, constant(0));
  if (!mask) {
    mask.emplace(op, point, at(queries.token, keys.token), dimOf(lane), dimOf(keys.inner));
    if (mask->exists())
      mask->reserve(kernel, vectorType, slots(), schedule.lanes());
  }
  SmallVector<Value> state = emitSoftmax();
  setQueryLanes();
  result.store(*output, ArrayRef(state).drop_front(groups));
}

/// Returns the maxima and sums over all keys; leaves the unnormalized output in scratch.
SmallVector<Value> Attention::emitSoftmax() {
  SmallVector<Value> state(groups, splat(-std::numeric_limits<double>::infinity()));
  state.append(groups, splat(0.0));
  bool causal = op.getCausal();
  bool endsEarly = !kernel.bound().empty() && kernel.bound()[2] >= 0;
  CausalKeyRanges keyRuns(builder, loc, schedule, groups, problem.queries, problem.keys,
                          causal ? valueOf(queries.token) : Value(),
                          endsEarly ? kernel.sizeOf(kernel.bound()[2]) : Value());
  Value zero = constant(0);
  if (!schedule.online)
    return emitKeyBlock(state, /*rescale=*/false, [&](ArrayRef<Value> carried, RunBody body) {
      SmallVector<Value> now = keyRuns.ofTiles(zero, keyRuns.tiles(), carried, body);
      return causal ? keyRuns.ofDiagonal(keyRuns.end(), now, body) : now;
    });

  emitLoop(builder, loc, 0, problem.valueFeatures, 1, {}, [&](Value row, ValueRange) {
    for (int64_t group = 0; group < groups; ++group)
      output->store(splat(0.0), row, group);
    return SmallVector<Value>();
  });
  auto tileBlock = [&](Value low, ValueRange now) {
    Value high = least(add(low, schedule.keyTiles()), keyRuns.tiles());
    return emitKeyBlock(SmallVector<Value>(now), /*rescale=*/true,
                        [&](ArrayRef<Value> carried, RunBody body) {
                          return keyRuns.ofTiles(low, high, carried, body);
                        });
  };
  state = emitLoop(builder, loc, zero, keyRuns.tiles(), schedule.keyTiles(), state, tileBlock);
  if (!causal)
    return state;
  return emitKeyBlock(state, /*rescale=*/true, [&](ArrayRef<Value> carried, RunBody body) {
    return keyRuns.ofDiagonal(zero, carried, body);
  });
}

//===----------------------------------------------------------------------===//
// One block of keys
//===----------------------------------------------------------------------===//

void Attention::setKey(const KeyRun &run, Value offset) {
  set(keys.tile, run.tile);
  set(keys.inner, add(run.from, offset));
  set(slot, add(run.slot, offset));
  setQueryLanes(run.firstGroup);
}

SmallVector<Value> Attention::emitKeyBlock(ArrayRef<Value> state, bool rescale, KeyBlock runs) {
  ArrayRef<Value> maxima = state.take_front(groups);
  ArrayRef<Value> sums = state.drop_front(groups);
  if (mask->exists())
    runs({}, [&](const KeyRun &run, ArrayRef<Value>) {
      return keySteps(run, schedule.width, {}, [&](Value offset, int64_t count, ArrayRef<Value>) {
        setKey(run, offset);
        setQueryLanes();
        mask->copy(valueOf(slot), count);
        return SmallVector<Value>();
      });
    });
  SmallVector<Value> next = emitScores(maxima, runs);
  SmallVector<Value> shifts, factors;
  for (auto [group, maximum] : llvm::enumerate(next)) {
    shifts.push_back(powers->shiftOf(maximum));
    if (rescale)
      factors.push_back(powers->scaleBetween(maxima[group], shifts.back()));
  }
  SmallVector<Value> ofBlock = emitExponentials(shifts, runs);
  for (auto [group, sum] : llvm::enumerate(ofBlock))
    next.push_back(rescale ? fma(sums[group], factors[group], sum) : sum);
  emitOutput(factors, runs);
  return next;
}

SmallVector<Value> Attention::emitScores(ArrayRef<Value> maxima, KeyBlock runs) {
  return runs(maxima, [&](const KeyRun &run, ArrayRef<Value> all) {
    int64_t rows = schedule.rowsOf(groups - run.firstGroup, kernel.target);
    return onSeeing(run, groups, all, [&](ArrayRef<Value> seeing) {
      return keySteps(run, rows, seeing, [&](Value offset, int64_t count, ArrayRef<Value> now) {
        return emitScoreTile(run, offset, count, now);
      });
    });
  });
}

SmallVector<Value> Attention::emitScoreTile(const KeyRun &run, Value offset, int64_t count,
                                            ArrayRef<Value> maxima) {
  setKey(run, offset);
  int64_t seeing = maxima.size();
  int64_t keyStride = *space.coefficientOf(key->position, dimOf(keys.inner));
  Value firstSlot = valueOf(slot);
  SmallVector<Value> sums(count * seeing, splat(0.0));
  if (rawScores && mask->adds())
    for (int64_t i = 0; i < count; ++i)
      for (int64_t group = 0; group < seeing; ++group)
        sums[i * seeing + group] = mask->load(add(firstSlot, i), run.firstGroup + group);
  sums = steps(problem.features, 4, sums, [&](Value first, int64_t depth, ArrayRef<Value> now) {
    SmallVector<Value> next(now);
    for (int64_t i = 0; i < depth; ++i) {
      set(feature, add(first, i));
      next = emitTileStep(point, *key, keyStride, queryVectors.operand(), count, next);
    }
    return next;
  });
  SmallVector<Value> next(maxima);
  for (int64_t i = 0; i < count; ++i) {
    Value row = add(firstSlot, i);
    for (int64_t group = 0; group < seeing; ++group) {
      Value score = sums[i * seeing + group];
      auto ofMask = [&] { return mask->load(row, run.firstGroup + group); };
      if (!rawScores) {
        Value scale = splat(op.getScale().convertToDouble());
        score = mask->adds() ? fma(score, scale, ofMask()) : multiply(score, scale);
      }
      if (mask->replaces())
        score = mask->replaceIn(score, ofMask());
      if (run.diagonal && group == 0)
        score = hideLater(builder, loc, score, add(offset, i));
      scores->store(score, row, run.firstGroup + group);
      // The comparison skips NaN; its exponential makes the sum NaN.
      Value larger =
          arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, score, next[group]);
      next[group] = arith::SelectOp::create(builder, loc, larger, score, next[group]);
    }
  }
  return next;
}

/// Exponentials of one key block, and their sums: of the block alone, to keep chains of additions
/// short.
SmallVector<Value> Attention::emitExponentials(ArrayRef<Value> shifts, KeyBlock runs) {
  SmallVector<Value> zeros(groups, splat(0.0));
  return runs(zeros, [&](const KeyRun &run, ArrayRef<Value> all) {
    return onSeeing(run, groups, all, [&](ArrayRef<Value> seeing) {
      return keySteps(run, 1, seeing, [&](Value offset, int64_t, ArrayRef<Value> now) {
        SmallVector<Value> next;
        Value row = add(run.slot, offset);
        for (auto [i, sum] : llvm::enumerate(now)) {
          int64_t group = run.firstGroup + i;
          Value power = powers->of(scores->load(row, group), shifts[group]);
          scores->store(power, row, group);
          next.push_back(arith::AddFOp::create(builder, loc, sum, power));
        }
        return next;
      });
    });
  });
}

/// Adds values weighted with the exponentials to the output, after scaling it by `factors`;
/// overwrites it if there are none.
void Attention::emitOutput(ArrayRef<Value> factors, KeyBlock runs) {
  int64_t rowStride = *space.coefficientOf(value->position, dimOf(valueFeature));
  TileOperand weights = scores->at(slot, lane);
  auto tile = [&](Value first, int64_t count, ArrayRef<Value>) {
    set(valueFeature, first);
    setQueryLanes();
    result.fetch(count);
    SmallVector<Value> zeros(count * groups, splat(0.0));
    SmallVector<Value> sums = runs(zeros, [&](const KeyRun &run, ArrayRef<Value> all) {
      return onSeeing(run, groups, all, [&](ArrayRef<Value> seeing) {
        return keySteps(run, std::min<int64_t>(4, schedule.width), seeing,
                        [&](Value offset, int64_t depth, ArrayRef<Value> now) {
                          SmallVector<Value> next(now);
                          for (int64_t i = 0; i < depth; ++i) {
                            setKey(run, add(offset, i));
                            next = emitTileStep(point, *value, rowStride, weights, count, next);
                          }
                          return next;
                        });
      });
    });
    for (auto [i, sum] : llvm::enumerate(sums)) {
      Value row = add(first, i / groups);
      int64_t group = i % groups;
      if (!factors.empty())
        sum = fma(output->load(row, group), factors[group], sum);
      output->store(sum, row, group);
    }
    return SmallVector<Value>();
  };
  steps(problem.valueFeatures, schedule.rowsOf(groups, kernel.target), {}, tile);
}

LogicalResult weft::emitAttention(KernelFunction &kernel) {
  auto op = onlyOp<AttentionOp>(kernel.source);
  if (!op)
    return failure();
  Attention attention(kernel, op);
  if (failed(attention.match()))
    return failure();
  attention.emit();
  return success();
}
