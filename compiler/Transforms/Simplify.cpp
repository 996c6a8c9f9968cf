// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Patterns that remove copies before contractions: reshapes of tokens sink, transposes become
// contraction dims, unit dims are removed from broadcasts.
#include "compiler/Graph/OpStructure.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace weft {
#define GEN_PASS_DEF_SIMPLIFY
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// Whether the tokens of (..., tokens, features) fill vectors: dim rank - 2 does alone, and
/// images (..., h, w, c) do so without a padded tail in each row.
static bool fillsVectors(RankedTensorType type, int64_t lanes) {
  int64_t tokens = type.getDimSize(type.getRank() - 2);
  return tokens >= lanes && (type.getRank() <= 3 || tokens % lanes == 0);
}

/// A reshape that only merges or splits leading dims, (b..., t, f...) <-> (m, f...), as the
/// view(-1, f) around GPT-2's Conv1D does.
static bool regroupsLeadingDims(ReshapeOp reshape) {
  RankedTensorType from = reshape.getOperand().getType(), to = reshape.getType();
  int64_t shared = std::min(from.getRank(), to.getRank()) - 1;
  if (shared < 1 || from.getRank() == to.getRank() || layoutOf(from) || layoutOf(to))
    return false;
  return from.getShape().take_back(shared) == to.getShape().take_back(shared);
}

/// Contractions prefer the grouping whose tokens fill vectors; if both do, the split one, which
/// attention needs. A reshape from the preferred grouping sinks.
static bool sinks(ReshapeOp reshape, int64_t lanes) {
  if (!regroupsLeadingDims(reshape))
    return false;
  RankedTensorType from = reshape.getOperand().getType(), to = reshape.getType();
  if (from.getRank() > to.getRank())
    return fillsVectors(from, lanes) || !fillsVectors(to, lanes);
  return fillsVectors(from, lanes) && !fillsVectors(to, lanes);
}

/// A type of `shape` with the element type of `type`.
static RankedTensorType reshaped(Type type, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, cast<RankedTensorType>(type).getElementType());
}

/// Whether the dot is (..., tokens, features) times a matrix.
static bool isLinear(DotGeneralOp dot) {
  int64_t last = dot.getLhs().getType().getRank() - 1;
  return dot.getLhsBatch().empty() && dot.getRhs().getType().getRank() == 2 &&
         dot.getLhsContract() == ArrayRef<int64_t>(last);
}

/// Replaces `dot` by one of `lhs`, which has other leading dims, and a reshape of the result.
static void replaceLhs(DotGeneralOp dot, Value lhs, PatternRewriter &rewriter) {
  ArrayRef<int64_t> from = cast<RankedTensorType>(lhs.getType()).getShape();
  int64_t oldRank = dot.getLhs().getType().getRank(), newRank = from.size();
  int64_t shared = std::min(oldRank, newRank) - 1;
  auto contract = llvm::map_to_vector(dot.getLhsContract(),
                                      [&](int64_t dim) { return dim + newRank - oldRank; });
  SmallVector<int64_t> shape(from.drop_back(shared));
  llvm::append_range(shape, dot.getType().getShape().drop_front(oldRank - shared));
  auto regrouped = DotGeneralOp::create(rewriter, dot.getLoc(), reshaped(dot.getType(), shape), lhs,
                                        dot.getRhs(), dot.getLhsBatch(), dot.getRhsBatch(),
                                        contract, dot.getRhsContract());
  rewriter.replaceOpWithNewOp<ReshapeOp>(dot, dot.getType(), regrouped);
}

namespace {

/// dot_general(reshape(x), w) -> reshape(dot_general(x, w))
struct SinkReshapeBelowDot : OpRewritePattern<DotGeneralOp> {
  SinkReshapeBelowDot(MLIRContext *context, int64_t lanes)
      : OpRewritePattern(context), lanes(lanes) {}

  LogicalResult matchAndRewrite(DotGeneralOp dot, PatternRewriter &rewriter) const override {
    auto reshape = dot.getLhs().getDefiningOp<ReshapeOp>();
    if (!reshape || !sinks(reshape, lanes) || !dot.getLhsBatch().empty())
      return rewriter.notifyMatchFailure(dot, "lhs is grouped as contractions want it");
    int64_t from = reshape.getOperand().getType().getRank(), to = reshape.getType().getRank();
    int64_t leading = to - (std::min(from, to) - 1);
    if (llvm::any_of(dot.getLhsContract(), [&](int64_t dim) { return dim < leading; }))
      return rewriter.notifyMatchFailure(dot, "contracts a regrouped dim");
    replaceLhs(dot, reshape.getOperand(), rewriter);
    return success();
  }

  int64_t lanes;
};

/// (b, h, w, c) x (c, f) -> (b * h * w, c) x (c, f) if only the merged tokens fill vectors.
struct MergeTokens : OpRewritePattern<DotGeneralOp> {
  MergeTokens(MLIRContext *context, int64_t lanes) : OpRewritePattern(context), lanes(lanes) {}

  LogicalResult matchAndRewrite(DotGeneralOp dot, PatternRewriter &rewriter) const override {
    RankedTensorType lhs = dot.getLhs().getType();
    int64_t last = lhs.getRank() - 1;
    if (!isLinear(dot) || last < 2 || layoutOf(lhs))
      return rewriter.notifyMatchFailure(dot, "lhs has no leading dims to merge");
    int64_t features = lhs.getDimSize(last);
    int64_t tokens = ShapedType::getNumElements(lhs.getShape().drop_back());
    if (fillsVectors(lhs, lanes) || tokens < lanes)
      return rewriter.notifyMatchFailure(dot, "merging gains no vectors");
    replaceLhs(
        dot,
        ReshapeOp::create(rewriter, dot.getLoc(), reshaped(lhs, {tokens, features}), dot.getLhs()),
        rewriter);
    return success();
  }

  int64_t lanes;
};

/// f(reshape(x), y...) -> reshape(f(x, y'...)) if every y is a reshape from the same shape, a
/// splat, or a broadcast along the regrouped dims.
struct SinkReshapeBelowElementwise : RewritePattern {
  SinkReshapeBelowElementwise(MLIRContext *context, int64_t lanes)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context), lanes(lanes) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isPointwise(op))
      return failure();
    ReshapeOp reshape = findSinkingOperand(op);
    if (!reshape)
      return rewriter.notifyMatchFailure(op, "operands are grouped as contractions want them");
    ArrayRef<int64_t> shape = reshape.getOperand().getType().getShape();
    if (!llvm::all_of(op->getOperands(), [&](Value v) { return canFollow(v, shape); }))
      return rewriter.notifyMatchFailure(op, "an operand cannot follow the reshape");

    auto operands = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return follow(operand, shape, rewriter); });
    Type type = op->getResult(0).getType();
    Operation *sunk = rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands,
                                      reshaped(type, shape), op->getAttrs());
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, type, sunk->getResult(0));
    return success();
  }

private:
  ReshapeOp findSinkingOperand(Operation *op) const {
    for (Value operand : op->getOperands())
      if (auto reshape = operand.getDefiningOp<ReshapeOp>())
        if (sinks(reshape, lanes))
          return reshape;
    return nullptr;
  }

  static bool canFollow(Value value, ArrayRef<int64_t> shape) {
    if (auto reshape = value.getDefiningOp<ReshapeOp>())
      return reshape.getOperand().getType().getShape() == shape;
    if (auto constant = value.getDefiningOp<ConstantOp>())
      return isa<SplatElementsAttr>(constant.getValue());
    auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
    if (!broadcast)
      return false;
    int64_t rank = broadcast.getType().getRank();
    int64_t leading = rank - (std::min<int64_t>(rank, shape.size()) - 1);
    return llvm::all_of(broadcast.getDims(), [&](int64_t dim) { return dim >= leading; });
  }

  static Value follow(Value value, ArrayRef<int64_t> shape, PatternRewriter &rewriter) {
    if (auto reshape = value.getDefiningOp<ReshapeOp>())
      return reshape.getOperand();
    RankedTensorType type = reshaped(value.getType(), shape);
    if (auto constant = value.getDefiningOp<ConstantOp>()) {
      auto splat = cast<SplatElementsAttr>(constant.getValue());
      return ConstantOp::create(rewriter, value.getLoc(), type, splat.resizeSplat(type));
    }
    auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
    int64_t shift = type.getRank() - broadcast.getType().getRank();
    auto dims = llvm::map_to_vector(broadcast.getDims(), [&](int64_t dim) { return dim + shift; });
    return BroadcastInDimOp::create(rewriter, value.getLoc(), type, broadcast.getOperand(), dims);
  }

  int64_t lanes;
};

/// A transpose that keeps the order of free dims only renumbers dims. The lhs (..., tokens,
/// features) of a linear layer keeps its transpose: with its layout that is a view.
struct FoldTransposeIntoDot : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DotGeneralOp dot, PatternRewriter &rewriter) const override {
    Side lhs{dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract()};
    Side rhs{dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract()};
    bool lhsFolds = !isLinear(dot) && fold(lhs), rhsFolds = fold(rhs);
    if (!lhsFolds && !rhsFolds)
      return rewriter.notifyMatchFailure(dot, "no operand is a transpose that keeps free dims");
    rewriter.replaceOpWithNewOp<DotGeneralOp>(dot, dot.getType(), lhs.value, rhs.value, lhs.batch,
                                              rhs.batch, lhs.contract, rhs.contract);
    return success();
  }

private:
  struct Side {
    Side(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract)
        : value(value), batch(batch), contract(contract) {}
    bool isFree(int64_t dim) const {
      return !llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim);
    }
    Value value;
    SmallVector<int64_t> batch, contract;
  };

  static bool fold(Side &side) {
    auto transpose = side.value.getDefiningOp<TransposeOp>();
    if (!transpose)
      return false;
    ArrayRef<int64_t> perm = transpose.getPerm();
    SmallVector<int64_t> freeDims;
    for (auto [dim, source] : llvm::enumerate(perm))
      if (side.isFree(dim))
        freeDims.push_back(source);
    if (!llvm::is_sorted(freeDims))
      return false;
    for (int64_t &dim : side.batch)
      dim = perm[dim];
    for (int64_t &dim : side.contract)
      dim = perm[dim];
    side.value = transpose.getOperand();
    return true;
  }
};

/// dot_general(x, relayout(w)) -> dot_general(x, w) for an argument w, which is read well with any
/// strides.
struct ReadWeightInPlace : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DotGeneralOp dot, PatternRewriter &rewriter) const override {
    auto relayout = dot.getRhs().getDefiningOp<RelayoutOp>();
    if (!relayout || !isa<BlockArgument>(relayout.getOperand()))
      return rewriter.notifyMatchFailure(dot, "rhs is no argument in a layout of its own");
    rewriter.modifyOpInPlace(dot, [&] { dot.getRhsMutable().assign(relayout.getOperand()); });
    return success();
  }
};

/// broadcast_in_dim(reshape(x)) -> broadcast_in_dim(x) if the reshape only adds or drops dims of
/// size 1.
struct SkipUnitDimsAheadOfBroadcast : OpRewritePattern<BroadcastInDimOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BroadcastInDimOp broadcast,
                                PatternRewriter &rewriter) const override {
    auto reshape = broadcast.getOperand().getDefiningOp<ReshapeOp>();
    if (!reshape)
      return rewriter.notifyMatchFailure(broadcast, "operand is not reshaped");
    ArrayRef<int64_t> from = reshape.getOperand().getType().getShape();
    ArrayRef<int64_t> to = reshape.getType().getShape();
    SmallVector<int64_t> dims;
    int64_t next = 0;
    for (int64_t size : from) {
      while (next < static_cast<int64_t>(to.size()) && to[next] == 1 && size != 1)
        ++next;
      if (next == static_cast<int64_t>(to.size()) || to[next] != size)
        return rewriter.notifyMatchFailure(broadcast, "reshape is more than added unit dims");
      dims.push_back(broadcast.getDims()[next++]);
    }
    if (llvm::any_of(to.drop_front(next), [](int64_t size) { return size != 1; }))
      return rewriter.notifyMatchFailure(broadcast, "reshape is more than added unit dims");
    rewriter.modifyOpInPlace(broadcast, [&] {
      broadcast.getOperandMutable().assign(reshape.getOperand());
      broadcast.setDims(dims);
    });
    return success();
  }
};

struct Simplify : weft::impl::SimplifyBase<Simplify> {
  using SimplifyBase::SimplifyBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<MergeTokens, SinkReshapeBelowDot, SinkReshapeBelowElementwise>(&getContext(),
                                                                                lanes);
    patterns.add<FoldTransposeIntoDot, ReadWeightInPlace, SkipUnitDimsAheadOfBroadcast>(
        &getContext());
    ReshapeOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
