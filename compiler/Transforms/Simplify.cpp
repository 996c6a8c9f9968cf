// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Patterns that let contractions see their operands without copies in between: merging
// reshapes sink, transposes become contraction dims, unit dims vanish from broadcasts.
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace weft {
#define GEN_PASS_DEF_SIMPLIFY
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// A reshape (b..., t, f) -> (m, ..., f) that merges leading dims and keeps the last one:
/// what nn.Linear's and GPT-2's view(-1, f) are.
static bool mergesLeadingDims(ReshapeOp reshape) {
  RankedTensorType from = reshape.getOperand().getType(), to = reshape.getType();
  int64_t merged = from.getRank() - to.getRank();
  if (to.getRank() < 2 || merged <= 0 || layoutOf(from) || layoutOf(to))
    return false;
  return from.getShape().drop_front(merged + 1) == to.getShape().drop_front();
}

/// Whether the rows of `from` alone fill a vector, or those of `to` do not either. Splitting
/// other rows would cost a contraction its vectors over tokens.
static bool splitKeepsVectors(RankedTensorType from, RankedTensorType to, int64_t lanes) {
  return from.getDimSize(from.getRank() - 2) >= lanes || to.getDimSize(to.getRank() - 2) < lanes;
}

static RankedTensorType withShapeOf(Type element, RankedTensorType shape) {
  return RankedTensorType::get(shape.getShape(), cast<RankedTensorType>(element).getElementType());
}

namespace {

/// dot_general(reshape(x), w) -> reshape(dot_general(x, w))
struct SinkReshapeBelowDot : OpRewritePattern<DotGeneralOp> {
  SinkReshapeBelowDot(MLIRContext *context, int64_t lanes)
      : OpRewritePattern(context), lanes(lanes) {}

  LogicalResult matchAndRewrite(DotGeneralOp dot, PatternRewriter &rewriter) const override {
    auto reshape = dot.getLhs().getDefiningOp<ReshapeOp>();
    if (!reshape || !mergesLeadingDims(reshape) || !dot.getLhsBatch().empty())
      return rewriter.notifyMatchFailure(dot, "lhs does not merge leading dims");
    RankedTensorType from = reshape.getOperand().getType(), to = reshape.getType();
    if (!splitKeepsVectors(from, to, lanes))
      return rewriter.notifyMatchFailure(dot, "tokens fill a vector only together");
    if (llvm::is_contained(dot.getLhsContract(), 0))
      return rewriter.notifyMatchFailure(dot, "contracts the merged dim");

    int64_t merged = from.getRank() - to.getRank();
    auto contract = llvm::map_to_vector(dot.getLhsContract(),
                                        [&](int64_t dim) { return dim + merged; });
    SmallVector<int64_t> shape(from.getShape().take_front(merged + 1));
    llvm::append_range(shape, dot.getType().getShape().drop_front());
    auto type = RankedTensorType::get(shape, dot.getType().getElementType());
    auto split = DotGeneralOp::create(rewriter, dot.getLoc(), type, reshape.getOperand(),
                                      dot.getRhs(), dot.getLhsBatch(), dot.getRhsBatch(), contract,
                                      dot.getRhsContract());
    rewriter.replaceOpWithNewOp<ReshapeOp>(dot, dot.getType(), split);
    return success();
  }

  int64_t lanes;
};

/// f(reshape(x), y...) -> reshape(f(x, y'...)) where every y is a reshape from the same
/// shape, a splat, or a broadcast along the merged dims.
struct SinkReshapeBelowElementwise : RewritePattern {
  explicit SinkReshapeBelowElementwise(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<OpTrait::Elementwise>() && !isa<GeluOp, SiluOp>(op))
      return failure();
    ReshapeOp reshape = findMergingOperand(op);
    if (!reshape)
      return rewriter.notifyMatchFailure(op, "no operand merges leading dims");
    RankedTensorType from = reshape.getOperand().getType();
    if (!llvm::all_of(op->getOperands(), [&](Value v) { return canSplit(v, from); }))
      return rewriter.notifyMatchFailure(op, "an operand cannot follow the reshape");

    auto operands = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return split(operand, from, rewriter); });
    Type resultType = op->getResult(0).getType();
    Operation *sunk = rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands,
                                      withShapeOf(resultType, from), op->getAttrs());
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, resultType, sunk->getResult(0));
    return success();
  }

private:
  static ReshapeOp findMergingOperand(Operation *op) {
    for (Value operand : op->getOperands())
      if (auto reshape = operand.getDefiningOp<ReshapeOp>())
        if (mergesLeadingDims(reshape))
          return reshape;
    return nullptr;
  }

  static bool canSplit(Value value, RankedTensorType shape) {
    if (auto reshape = value.getDefiningOp<ReshapeOp>())
      return reshape.getOperand().getType().getShape() == shape.getShape();
    if (auto constant = value.getDefiningOp<ConstantOp>())
      return isa<SplatElementsAttr>(constant.getValue());
    if (auto broadcast = value.getDefiningOp<BroadcastInDimOp>())
      return !llvm::is_contained(broadcast.getDims(), 0);
    return false;
  }

  static Value split(Value value, RankedTensorType shape, PatternRewriter &rewriter) {
    if (auto reshape = value.getDefiningOp<ReshapeOp>())
      return reshape.getOperand();
    RankedTensorType type = withShapeOf(value.getType(), shape);
    if (auto constant = value.getDefiningOp<ConstantOp>()) {
      auto splat = cast<SplatElementsAttr>(constant.getValue());
      return ConstantOp::create(rewriter, value.getLoc(), type, splat.resizeSplat(type));
    }
    auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
    int64_t merged = shape.getRank() - broadcast.getType().getRank();
    auto dims = llvm::map_to_vector(broadcast.getDims(), [&](int64_t dim) { return dim + merged; });
    return BroadcastInDimOp::create(rewriter, value.getLoc(), type, broadcast.getOperand(), dims);
  }
};

/// A transpose that keeps the order of the dims that stay free is a renaming of dims.
struct FoldTransposeIntoDot : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DotGeneralOp dot, PatternRewriter &rewriter) const override {
    Side lhs{dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract()};
    Side rhs{dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract()};
    bool lhsFolds = fold(lhs), rhsFolds = fold(rhs);
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

/// dot_general(x, relayout(w)) -> dot_general(x, w) for an argument w: its strides are as
/// good as any.
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

/// broadcast_in_dim(reshape(x)) -> broadcast_in_dim(x) where the reshape only adds or drops
/// dims of size 1.
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
    patterns.add<SinkReshapeBelowDot>(&getContext(), lanes);
    patterns.add<SinkReshapeBelowElementwise, FoldTransposeIntoDot, ReadWeightInPlace,
                 SkipUnitDimsAheadOfBroadcast>(&getContext());
    ReshapeOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
