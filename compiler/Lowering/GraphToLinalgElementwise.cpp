// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise ops: one linalg.generic over the physical dims of the result each.
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Lowering/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

namespace {
struct LowerElementwise : OpTraitConversionPattern<OpTrait::Elementwise> {
  using OpTraitConversionPattern::OpTraitConversionPattern;
  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

LogicalResult LowerElementwise::matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                                ConversionPatternRewriter &rewriter) const {
  Location loc = op->getLoc();
  auto logical = cast<RankedTensorType>(op->getResult(0).getType());
  RankedTensorType type = storageType(logical);
  Layout layout = Layout::of(logical);
  // Splats become scalar constants in the body, the other operands inputs.
  SmallVector<Value> inputs;
  SmallVector<TypedAttr> splats;
  for (auto [operand, old] : llvm::zip_equal(operands, op->getOperands())) {
    splats.push_back(splatOf(operand));
    if (!splats.back())
      inputs.push_back(
          relayout(rewriter, loc, {operand, cast<RankedTensorType>(old.getType())}, layout));
  }
  SmallVector<AffineMap> maps(inputs.size(), rewriter.getMultiDimIdentityMap(type.getRank()));
  Value result = parallelGeneric(
      rewriter, loc, type, inputs, maps,
      [&](OpBuilder &body, Location loc, ValueRange args) -> Value {
        SmallVector<Value> elements;
        auto next = args.begin();
        for (auto [splat, old] : llvm::zip_equal(splats, op->getOperands())) {
          Value stored = splat ? arith::ConstantOp::create(body, loc, splat) : *next++;
          elements.push_back(decode(body, loc, stored, getElementTypeOrSelf(old.getType())));
        }
        return encode(body, loc, emitScalar(body, op, elements), logical.getElementType());
      });
  rewriter.replaceOp(op, result);
  return success();
}

void weft::populateElementwiseToLinalg(RewritePatternSet &patterns,
                                       const TypeConverter &converter) {
  patterns.add<LowerElementwise>(converter, patterns.getContext());
}
