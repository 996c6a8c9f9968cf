// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sort stays an op, on row-major physical tensors.
#include "compiler/Graph/StoredBools.h"
#include "compiler/Lowering/GraphToLinalg.h"

using namespace mlir;
using namespace weft;

namespace {
struct ConvertSort : OpConversionPattern<SortOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(SortOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

LogicalResult ConvertSort::matchAndRewrite(SortOp op, OpAdaptor adaptor,
                                           ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getOperand().getType());
  if (logical.getElementType().isUnsignedInteger())
    return rewriter.notifyMatchFailure(op, "storage does not tell u8 from i8");
  Layout plain = Layout::rowMajor(logical.getRank());
  Value operand = relayout(rewriter, loc, {adaptor.getOperand(), logical}, plain);
  auto sort =
      SortOp::create(rewriter, loc, operand, op.getDim(), op.getDescending(), op.getCount());
  if (logical.getElementType().isInteger(1))
    sort->setAttr(attr::storedBools, rewriter.getUnitAttr());
  SmallVector<Value> results;
  for (auto [stored, old] : llvm::zip_equal(sort->getResults(), op->getResults())) {
    auto type = cast<RankedTensorType>(old.getType());
    results.push_back(relayout(rewriter, loc, {stored, type.getShape(), plain}, Layout::of(type)));
  }
  rewriter.replaceOp(op, results);
  return success();
}

void weft::populateOrderToLinalg(RewritePatternSet &patterns, const TypeConverter &converter) {
  patterns.add<ConvertSort>(converter, patterns.getContext());
}
