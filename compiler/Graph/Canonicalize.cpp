// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Canonical forms: chains of moves are one move, an index grid is one iota, and what is
// computed from broadcasts is computed before them. Together they turn an attention
// mask over (batch, head, query, key) back into a mask over keys.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/ConstantFolding.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Chains of moves
//===----------------------------------------------------------------------===//

/// broadcast(broadcast(x)) places x's dims at once. A dim that the inner one repeats
/// from size 1 has size 1 for the outer one too.
static LogicalResult composeBroadcasts(BroadcastInDimOp op, PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<BroadcastInDimOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "operand is not a broadcast");
  auto dims = llvm::map_to_vector(inner.getDims(), [&](int64_t dim) { return op.getDims()[dim]; });
  rewriter.replaceOpWithNewOp<BroadcastInDimOp>(op, op.getType(), inner.getOperand(), dims);
  return success();
}

/// A broadcast iota is an iota, unless its own dim is the one repeated.
static LogicalResult broadcastIota(BroadcastInDimOp op, PatternRewriter &rewriter) {
  auto iota = op.getOperand().getDefiningOp<IotaOp>();
  if (!iota)
    return rewriter.notifyMatchFailure(op, "operand is not an iota");
  int64_t dim = op.getDims()[iota.getDim()];
  if (iota.getType().getDimSize(iota.getDim()) != op.getType().getDimSize(dim))
    return rewriter.notifyMatchFailure(op, "repeats the dim of the iota");
  rewriter.replaceOpWithNewOp<IotaOp>(op, op.getType(), dim);
  return success();
}

void BroadcastInDimOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(composeBroadcasts);
  patterns.add(broadcastIota);
}

static LogicalResult composeReshapes(ReshapeOp op, PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<ReshapeOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "operand is not a reshape");
  if (op->hasAttr(attr::stopsGradient) || inner->hasAttr(attr::stopsGradient))
    return rewriter.notifyMatchFailure(op, "a derivative may follow yet");
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getOperand());
  return success();
}

/// The only dim of more than one element, if there is exactly one.
static std::optional<int64_t> onlyDim(RankedTensorType type) {
  std::optional<int64_t> only;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (size == 1)
      continue;
    if (only)
      return std::nullopt;
    only = dim;
  }
  return only;
}

/// A row of indices under a shape with more dims of size 1 is still an iota.
static LogicalResult reshapeIota(ReshapeOp op, PatternRewriter &rewriter) {
  auto iota = op.getOperand().getDefiningOp<IotaOp>();
  if (!iota || onlyDim(iota.getType()) != static_cast<int64_t>(iota.getDim()))
    return rewriter.notifyMatchFailure(op, "operand is not one row of indices");
  std::optional<int64_t> dim = onlyDim(op.getType());
  if (!dim)
    return rewriter.notifyMatchFailure(op, "splits the indices");
  rewriter.replaceOpWithNewOp<IotaOp>(op, op.getType(), *dim);
  return success();
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(composeReshapes);
  patterns.add(reshapeIota);
}

/// A part of a part is one of the whole.
static LogicalResult composeSlices(SliceOp op, PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<SliceOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "operand is not a slice");
  SmallVector<int64_t> start, limit, stride;
  for (auto [dim, size] : llvm::enumerate(op.getType().getShape())) {
    int64_t step = inner.getStride()[dim];
    start.push_back(inner.getStart()[dim] + op.getStart()[dim] * step);
    stride.push_back(op.getStride()[dim] * step);
    limit.push_back(size == 0 ? start.back() : start.back() + (size - 1) * stride.back() + 1);
  }
  rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), inner.getOperand(), start, limit, stride);
  return success();
}

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(composeSlices);
}

/// What was cut along `dim` and is put together again, as it was.
static SliceOp sliceOfAll(ArrayRef<SliceOp> parts, int64_t dim, PatternRewriter &rewriter) {
  auto same = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b, int64_t except) {
    return llvm::all_of(llvm::seq<int64_t>(a.size()),
                        [&](int64_t i) { return i == except || a[i] == b[i]; });
  };
  SliceOp first = parts.front();
  int64_t step = first.getStride()[dim], size = 0;
  for (SliceOp part : parts) {
    bool follows = part.getOperand() == first.getOperand() &&
                   part.getStride() == first.getStride() &&
                   same(part.getStart(), first.getStart(), dim) &&
                   same(part.getLimit(), first.getLimit(), dim) &&
                   part.getStart()[dim] == first.getStart()[dim] + size * step;
    if (!follows)
      return {};
    size += part.getType().getDimSize(dim);
  }
  SmallVector<int64_t> limit(first.getLimit());
  SliceOp last = parts.back();
  limit[dim] = last.getLimit()[dim];
  return SliceOp::create(rewriter, first.getLoc(), first.getOperand(), first.getStart(), limit,
                         first.getStride());
}

static LogicalResult concatSlices(ConcatOp op, PatternRewriter &rewriter) {
  SmallVector<SliceOp> parts;
  bool reshaped = false;
  for (Value operand : op.getOperands()) {
    auto reshape = operand.getDefiningOp<ReshapeOp>();
    reshaped |= !!reshape;
    parts.push_back((reshape ? reshape.getOperand() : operand).getDefiningOp<SliceOp>());
    // Rows stay rows of whatever shape.
    if (!parts.back() || (reshaped && (op.getDim() != 0 || !reshape)) ||
        parts.back().getType().getRank() == 0)
      return rewriter.notifyMatchFailure(op, "is not made of slices");
  }
  SliceOp all = sliceOfAll(parts, op.getDim(), rewriter);
  if (!all)
    return rewriter.notifyMatchFailure(op, "slices do not follow one another");
  if (reshaped)
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), all);
  else
    rewriter.replaceOp(op, all);
  return success();
}

void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(concatSlices);
}

static LogicalResult composeTransposes(TransposeOp op, PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<TransposeOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "operand is not a transpose");
  auto perm = llvm::map_to_vector(op.getPerm(), [&](int64_t dim) { return inner.getPerm()[dim]; });
  rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getOperand(), perm);
  return success();
}

/// Where only dims of one element change their places, nothing moves.
static LogicalResult transposeUnitDims(TransposeOp op, PatternRewriter &rewriter) {
  RankedTensorType type = op.getOperand().getType();
  if (layoutOf(type) || layoutOf(op.getType()))
    return rewriter.notifyMatchFailure(op, "not row-major");
  SmallVector<int64_t> moved(op.getPerm());
  llvm::erase_if(moved, [&](int64_t dim) { return type.getDimSize(dim) == 1; });
  if (!llvm::is_sorted(moved))
    return rewriter.notifyMatchFailure(op, "moves elements");
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getOperand());
  return success();
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(composeTransposes);
  patterns.add(transposeUnitDims);
}

//===----------------------------------------------------------------------===//
// Indices that enumerate
//===----------------------------------------------------------------------===//

/// A gather whose indices are iotas over whole dims repeats its operand. An indexed dim of
/// size 1 is read at 0 whatever the index.
static LogicalResult gatherByIotas(GatherOp op, PatternRewriter &rewriter) {
  RankedTensorType type = op.getOperand().getType();
  llvm::SmallDenseMap<int64_t, int64_t> placeOf;
  SmallVector<int64_t> unitDims;
  for (auto [indices, dim] : llvm::zip(op.getIndices(), op.getIndexedDims())) {
    auto iota = indices.getDefiningOp<IotaOp>();
    if (type.getDimSize(dim) == 1)
      unitDims.push_back(dim);
    else if (iota && iota.getType().getDimSize(iota.getDim()) == type.getDimSize(dim))
      placeOf[dim] = iota.getDim();
    else
      return rewriter.notifyMatchFailure(op, "indices do not enumerate a dim");
  }
  int64_t nextKept = tensorType(op.getIndices().front()).getRank();
  SmallVector<int64_t> shape, places;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (llvm::is_contained(unitDims, static_cast<int64_t>(dim)))
      continue;
    auto place = placeOf.find(dim);
    places.push_back(place == placeOf.end() ? nextKept++ : place->second);
    shape.push_back(size);
  }
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i - 1] >= places[i])
      return rewriter.notifyMatchFailure(op, "reads a diagonal or transposes");
  Value source = op.getOperand();
  if (!unitDims.empty())
    source = ReshapeOp::create(rewriter, op.getLoc(),
                               RankedTensorType::get(shape, type.getElementType()), source);
  rewriter.replaceOpWithNewOp<BroadcastInDimOp>(op, op.getType(), source, places);
  return success();
}

void GatherOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(gatherByIotas);
}

static SplatElementsAttr splatOf(Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return {};
  return dyn_cast<SplatElementsAttr>(constant);
}

/// What compares a choice of two numbers is the choice of two answers: tril(ones) == 0.
static LogicalResult compareChoice(CmpOp op, PatternRewriter &rewriter) {
  auto choice = op.getLhs().getDefiningOp<SelectOp>();
  if (!choice ||
      !llvm::all_of(ValueRange{choice.getOnTrue(), choice.getOnFalse(), op.getRhs()}, splatOf))
    return rewriter.notifyMatchFailure(op, "not a choice of numbers beside a number");
  Value condition = choice.getCondition();
  auto answer = [&](Value number) {
    return rewriter.createOrFold<CmpOp>(op.getLoc(), op.getType(), op.getPredicate(), number,
                                        op.getRhs());
  };
  Value onTrue = answer(choice.getOnTrue()), onFalse = answer(choice.getOnFalse());
  auto isAlways = [](Value answer, int64_t bit) {
    Attribute constant;
    return matchPattern(answer, m_Constant(&constant)) && isIntSplat(constant, bit);
  };
  if (isAlways(onTrue, 0) && isAlways(onFalse, -1) && condition.getType() == op.getType())
    rewriter.replaceOpWithNewOp<NotOp>(op, condition);
  else
    rewriter.replaceOpWithNewOp<SelectOp>(op, condition, onTrue, onFalse);
  return success();
}

void CmpOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(compareChoice);
}

/// Whether all of `indices` along their last dim are the same.
static bool repeatsAlongLast(Value indices) {
  int64_t last = tensorType(indices).getRank() - 1;
  if (auto iota = indices.getDefiningOp<IotaOp>())
    return static_cast<int64_t>(iota.getDim()) != last;
  auto broadcast = indices.getDefiningOp<BroadcastInDimOp>();
  if (!broadcast)
    return false;
  const int64_t *place = llvm::find(broadcast.getDims(), last);
  return place == broadcast.getDims().end() ||
         broadcast.getOperand().getType().getShape().back() == 1;
}

/// One of what `indices` repeat along their last dim.
static Value withoutLastDim(Value indices, PatternRewriter &rewriter) {
  RankedTensorType type = tensorType(indices);
  int64_t last = type.getRank() - 1;
  auto shorter = RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
  if (auto iota = indices.getDefiningOp<IotaOp>())
    return IotaOp::create(rewriter, iota.getLoc(), shorter, iota.getDim());
  auto broadcast = indices.getDefiningOp<BroadcastInDimOp>();
  Value source = broadcast.getOperand();
  ArrayRef<int64_t> dims = broadcast.getDims();
  if (llvm::is_contained(dims, last)) {
    dims = dims.drop_back();
    source = ReshapeOp::create(
        rewriter, broadcast.getLoc(),
        RankedTensorType::get(tensorType(source).getShape().drop_back(), type.getElementType()),
        source);
  }
  return BroadcastInDimOp::create(rewriter, broadcast.getLoc(), shorter, source, dims);
}

/// Updates whose indices count through a whole dim, while the other indices stay, are
/// updates by slices: scatter_add along dim 0 with an index that was expanded.
static LogicalResult scatterBySlices(ScatterOp op, PatternRewriter &rewriter) {
  RankedTensorType type = op.getOperand().getType();
  int64_t last = tensorType(op.getIndices().front()).getRank() - 1;
  std::optional<unsigned> counting;
  for (auto [number, indices, dim] : llvm::enumerate(op.getIndices(), op.getIndexedDims())) {
    auto iota = indices.getDefiningOp<IotaOp>();
    if (!counting && iota && static_cast<int64_t>(iota.getDim()) == last &&
        iota.getType().getShape().back() == type.getDimSize(dim))
      counting = number;
    else if (last < 0 || !repeatsAlongLast(indices))
      return rewriter.notifyMatchFailure(op, "indices change along their last dim");
  }
  if (!counting || op.getIndices().size() < 2)
    return rewriter.notifyMatchFailure(op, "no indices count");
  int64_t whole = op.getIndexedDims()[*counting];
  for (int64_t dim = 0; dim < whole; ++dim)
    if (!llvm::is_contained(op.getIndexedDims(), dim))
      return rewriter.notifyMatchFailure(op, "dims that are not indexed stand ahead");
  SmallVector<Value> indices;
  SmallVector<int64_t> dims;
  for (auto [number, each, dim] : llvm::enumerate(op.getIndices(), op.getIndexedDims()))
    if (number != *counting) {
      indices.push_back(withoutLastDim(each, rewriter));
      dims.push_back(dim);
    }
  rewriter.replaceOpWithNewOp<ScatterOp>(op, op.getType(), op.getKind(), op.getOperand(),
                                         op.getUpdates(), indices, dims);
  return success();
}

/// Slices of several dims are rows: a scatter's loops follow a row, and divide for every element of
/// a slice.
static LogicalResult scatterByRows(ScatterOp op, PatternRewriter &rewriter) {
  RankedTensorType type = op.getOperand().getType(), updates = op.getUpdates().getType();
  if (layoutOf(type) || layoutOf(updates) || layoutOf(op.getType()))
    return rewriter.notifyMatchFailure(op, "elements lie in another order");
  int64_t ahead = *llvm::max_element(op.getIndexedDims()) + 1, dims = type.getRank() - ahead;
  if (dims < 2)
    return rewriter.notifyMatchFailure(op, "slices are rows");
  auto asRows = [&](Value value) -> Value {
    auto whole = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(whole.getShape().drop_back(dims));
    shape.push_back(llvm::product_of(whole.getShape().take_back(dims)));
    return ReshapeOp::create(rewriter, op.getLoc(), whole.clone(shape), value);
  };
  Value rows = ScatterOp::create(rewriter, op.getLoc(), op.getKind(), asRows(op.getOperand()),
                                 asRows(op.getUpdates()), op.getIndices(), op.getIndexedDims());
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), rows);
  return success();
}

void ScatterOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(scatterBySlices);
  patterns.add(scatterByRows);
}

//===----------------------------------------------------------------------===//
// Elementwise ops before broadcasts
//===----------------------------------------------------------------------===//

namespace {

/// f(broadcast(a), broadcast(b), splat) is broadcast(f(a, b, splat)) when both broadcasts
/// place equal shapes alike.
struct HoistAheadOfBroadcast : OpTraitRewritePattern<OpTrait::Elementwise> {
  using OpTraitRewritePattern::OpTraitRewritePattern;

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<WeftDialect>(op->getDialect()) || op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "not an elementwise op of the graph");
    BroadcastInDimOp broadcast = commonBroadcast(op);
    if (!broadcast)
      return rewriter.notifyMatchFailure(op, "operands are not broadcasts of one kind");

    RankedTensorType source = broadcast.getOperand().getType();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(aheadOfBroadcast(operand, source, op->getLoc(), rewriter));
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    Operation *hoisted = rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands,
                                         source.clone(result.getElementType()), op->getAttrs());
    rewriter.replaceOpWithNewOp<BroadcastInDimOp>(op, result, hoisted->getResult(0),
                                                  broadcast.getDims());
    return success();
  }

private:
  /// The first of the broadcasts that all operands but splats are, or null.
  static BroadcastInDimOp commonBroadcast(Operation *op) {
    BroadcastInDimOp first;
    for (Value operand : op->getOperands()) {
      if (splatOf(operand))
        continue;
      auto broadcast = operand.getDefiningOp<BroadcastInDimOp>();
      if (!broadcast)
        return {};
      if (!first)
        first = broadcast;
      RankedTensorType type = broadcast.getOperand().getType(), to = first.getOperand().getType();
      if (broadcast.getDims() != first.getDims() || type.getShape() != to.getShape() ||
          type.getEncoding() != to.getEncoding())
        return {};
    }
    return first;
  }

  static Value aheadOfBroadcast(Value operand, RankedTensorType source, Location location,
                                PatternRewriter &rewriter) {
    if (SplatElementsAttr splat = splatOf(operand)) {
      RankedTensorType type = source.clone(splat.getElementType());
      return ConstantOp::create(rewriter, location, splat.resizeSplat(type));
    }
    return operand.getDefiningOp<BroadcastInDimOp>().getOperand();
  }
};

} // namespace

void WeftDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<HoistAheadOfBroadcast>(getContext());
}
