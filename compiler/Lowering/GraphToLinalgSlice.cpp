// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// slice, pad and concat.
#include "compiler/Lowering/GraphToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace weft;

namespace {
struct LowerSlice : OpConversionPattern<SliceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(SliceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
struct LowerPad : OpConversionPattern<PadOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(PadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
struct LowerConcat : OpConversionPattern<ConcatOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ConcatOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

/// One entry per physical dim: values[dim] for whole dims, `otherwise` for blocks and lanes.
static SmallVector<OpFoldResult> perPhysicalDim(Builder &builder, const Layout &layout,
                                                ArrayRef<int64_t> values, int64_t otherwise) {
  SmallVector<OpFoldResult> result;
  for (PhysicalDim dim : layout.dims())
    result.push_back(
        builder.getIndexAttr(dim.part == PhysicalDim::Whole ? values[dim.dim] : otherwise));
  return result;
}

/// The operand of a slice or pad, without a tile in a dim whose size changes.
template <typename Op>
static StoredTensor resizableOperand(OpBuilder &builder, Op op, Value stored) {
  StoredTensor operand(stored, cast<RankedTensorType>(op.getOperand().getType()));
  int64_t tileDim = operand.layout.tileDim;
  auto resized = cast<RankedTensorType>(op.getType());
  bool changes = tileDim >= 0 && resized.getDimSize(tileDim) != operand.shape[tileDim];
  return changes ? untiled(builder, op.getLoc(), operand) : operand;
}

LogicalResult LowerSlice::matchAndRewrite(SliceOp op, OpAdaptor adaptor,
                                          ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  StoredTensor operand = resizableOperand(rewriter, op, adaptor.getOperand());
  const Layout &layout = operand.layout;
  SmallVector<int64_t> physical = layout.physicalShape(logical.getShape());
  Value slice = tensor::ExtractSliceOp::create(
      rewriter, loc, RankedTensorType::get(physical, storageType(logical).getElementType()),
      operand.value, perPhysicalDim(rewriter, layout, op.getStart(), 0),
      getAsIndexOpFoldResult(getContext(), physical),
      perPhysicalDim(rewriter, layout, op.getStride(), 1));
  rewriter.replaceOp(
      op, relayout(rewriter, loc, {slice, logical.getShape(), layout}, Layout::of(logical)));
  return success();
}

/// The value of a scalar tensor, as a constant if it is known.
static Value scalarOf(OpBuilder &builder, Location loc, Value tensor) {
  if (TypedAttr splat = splatOf(tensor))
    return arith::ConstantOp::create(builder, loc, splat);
  return tensor::ExtractOp::create(builder, loc, tensor, ValueRange());
}

LogicalResult LowerPad::matchAndRewrite(PadOp op, OpAdaptor adaptor,
                                        ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  StoredTensor operand = resizableOperand(rewriter, op, adaptor.getOperand());
  const Layout &layout = operand.layout;
  auto type = RankedTensorType::get(layout.physicalShape(logical.getShape()),
                                    storageType(logical).getElementType());
  Value padded = operand.value;
  if (type != padded.getType())
    padded = tensor::PadOp::create(rewriter, loc, type, padded,
                                   perPhysicalDim(rewriter, layout, op.getLow(), 0),
                                   perPhysicalDim(rewriter, layout, op.getHigh(), 0),
                                   scalarOf(rewriter, loc, adaptor.getValue()));
  rewriter.replaceOp(
      op, relayout(rewriter, loc, {padded, logical.getShape(), layout}, Layout::of(logical)));
  return success();
}

LogicalResult LowerConcat::matchAndRewrite(ConcatOp op, OpAdaptor adaptor,
                                           ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  int64_t dim = op.getDim();
  Layout layout = Layout::of(logical);
  if (layout.tileDim == dim)
    layout = layout.withoutTile();
  Value result = tensor::EmptyOp::create(rewriter, loc, layout.physicalShape(logical.getShape()),
                                         storageType(logical).getElementType());
  SmallVector<int64_t> offset(logical.getRank(), 0);
  SmallVector<OpFoldResult> ones(cast<RankedTensorType>(result.getType()).getRank(),
                                 rewriter.getIndexAttr(1));
  for (auto [value, old] : llvm::zip_equal(adaptor.getOperands(), op.getOperands())) {
    auto oldType = cast<RankedTensorType>(old.getType());
    if (oldType.getNumElements() == 0) // linalg's verifiers reject empty slices
      continue;
    StoredTensor operand(value, oldType);
    Value part = relayout(rewriter, loc, operand, layout);
    result = tensor::InsertSliceOp::create(
        rewriter, loc, part, result, perPhysicalDim(rewriter, layout, offset, 0),
        getAsIndexOpFoldResult(getContext(), layout.physicalShape(operand.shape)), ones);
    offset[dim] += operand.shape[dim];
  }
  rewriter.replaceOp(
      op, relayout(rewriter, loc, {result, logical.getShape(), layout}, Layout::of(logical)));
  return success();
}

void weft::populateSliceToLinalg(RewritePatternSet &patterns, const TypeConverter &converter) {
  patterns.add<LowerSlice, LowerPad, LowerConcat>(converter, patterns.getContext());
}
