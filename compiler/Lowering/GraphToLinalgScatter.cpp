// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// scatter stays an op: on row-major physical tensors, its indices as i64.
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Lowering/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

namespace {
struct ConvertScatter : OpConversionPattern<ScatterOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ScatterOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

static Value rowMajor(OpBuilder &builder, Value stored, Value logical) {
  auto type = cast<RankedTensorType>(logical.getType());
  return relayout(builder, logical.getLoc(), {stored, type}, Layout::rowMajor(type.getRank()));
}

static Value widened(OpBuilder &builder, Location loc, Value indices, Type element) {
  auto type = cast<RankedTensorType>(indices.getType());
  Type wide = builder.getI64Type();
  if (type.getElementType() == wide)
    return indices;
  return parallelGeneric(builder, loc, type.clone(wide), indices,
                         builder.getMultiDimIdentityMap(type.getRank()),
                         [&](OpBuilder &body, Location loc, ValueRange args) -> Value {
                           if (hasUnsignedElements(element))
                             return arith::ExtUIOp::create(body, loc, wide, args.front());
                           return arith::ExtSIOp::create(body, loc, wide, args.front());
                         });
}

LogicalResult ConvertScatter::matchAndRewrite(ScatterOp op, OpAdaptor adaptor,
                                              ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  Type element = logical.getElementType();
  if (element.isUnsignedInteger() &&
      (op.getKind() == ScatterKind::max || op.getKind() == ScatterKind::min))
    return rewriter.notifyMatchFailure(op, "storage does not tell u8 from i8");
  Value operand = rowMajor(rewriter, adaptor.getOperand(), op.getOperand());
  Value updates = rowMajor(rewriter, adaptor.getUpdates(), op.getUpdates());
  SmallVector<Value> indices;
  for (auto [stored, each] : llvm::zip_equal(adaptor.getIndices(), op.getIndices()))
    indices.push_back(widened(rewriter, loc, rowMajor(rewriter, stored, each),
                              getElementTypeOrSelf(each.getType())));
  Value value = ScatterOp::create(rewriter, loc, operand.getType(), op.getKind(), operand, updates,
                                  indices, op.getIndexedDims());
  StoredTensor result(value, logical.getShape(), Layout::rowMajor(logical.getRank()));
  rewriter.replaceOp(op, relayout(rewriter, loc, result, Layout::of(logical)));
  return success();
}

void weft::populateScatterToLinalg(RewritePatternSet &patterns, const TypeConverter &converter) {
  patterns.add<ConvertScatter>(converter, patterns.getContext());
}
