// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-join-pads: a sum of parts that zeros are put around, as the gradient of what was
// cut into gates is, becomes a concat of the parts.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/SumTerms.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace weft {
#define GEN_PASS_DEF_JOINPADS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// A term of a sum that is zero but from `start` to `limit` along `dim`.
struct PaddedPart {
  Value part;
  int64_t dim, start, limit;
};

struct JoinPads : weft::impl::JoinPadsBase<JoinPads> {
  void runOnOperation() override;
};

} // namespace

static std::optional<PaddedPart> paddedPart(Value term) {
  auto pad = term.getDefiningOp<PadOp>();
  if (!pad || !matchPattern(pad.getValue(), m_AnyZeroFloat()))
    return std::nullopt;
  std::optional<PaddedPart> found;
  RankedTensorType type = tensorType(pad.getOperand());
  for (auto [dim, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh())) {
    if (low == 0 && high == 0)
      continue;
    if (found || low < 0 || high < 0)
      return std::nullopt;
    found =
        PaddedPart{pad.getOperand(), static_cast<int64_t>(dim), low, low + type.getDimSize(dim)};
  }
  return found;
}

/// Parts side by side, with zeros in between.
static Value joined(OpBuilder &builder, Location loc, RankedTensorType type,
                    ArrayRef<PaddedPart> parts) {
  int64_t dim = parts.front().dim, reached = 0;
  SmallVector<Value> operands;
  auto fill = [&](int64_t limit) {
    if (reached == limit)
      return;
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = limit - reached;
    auto gap = RankedTensorType::get(shape, type.getElementType());
    Attribute zero = builder.getZeroAttr(type.getElementType());
    operands.push_back(ConstantOp::create(builder, loc, gap, DenseElementsAttr::get(gap, zero)));
  };
  for (const PaddedPart &part : parts) {
    fill(part.start);
    operands.push_back(part.part);
    reached = part.limit;
  }
  fill(type.getDimSize(dim));
  return ConcatOp::create(builder, loc, type, operands, dim);
}

static LogicalResult joinPads(AddOp sum, PatternRewriter &rewriter) {
  if (isPartOfSum(sum))
    return rewriter.notifyMatchFailure(sum, "is a part of a sum");
  SmallVector<PaddedPart> parts;
  SmallVector<Value> others;
  for (Value term : termsOf(sum)) {
    std::optional<PaddedPart> part = paddedPart(term);
    if (part && (parts.empty() || parts.front().dim == part->dim))
      parts.push_back(*part);
    else
      others.push_back(term);
  }
  if (parts.size() < 2)
    return rewriter.notifyMatchFailure(sum, "has fewer than two padded terms");
  llvm::stable_sort(parts, [](auto &a, auto &b) { return a.start < b.start; });
  for (auto [part, next] :
       llvm::zip_equal(ArrayRef(parts).drop_back(), ArrayRef(parts).drop_front()))
    if (part.limit > next.start)
      return rewriter.notifyMatchFailure(sum, "padded terms overlap");
  Value whole = joined(rewriter, sum.getLoc(), tensorType(sum.getResult()), parts);
  for (Value other : llvm::reverse(others))
    whole = AddOp::create(rewriter, sum.getLoc(), other, whole);
  rewriter.replaceOp(sum, whole);
  return success();
}

void JoinPads::runOnOperation() {
  RewritePatternSet patterns(&getContext());
  patterns.add(joinPads);
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    signalPassFailure();
}
