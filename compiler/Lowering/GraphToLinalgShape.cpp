// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that rearrange or repeat elements: broadcast_in_dim, reshape, transpose, relayout,
// reverse and iota.
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Lowering/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

static Value copyElement(OpBuilder &, Location, ValueRange args) { return args.front(); }

namespace {
struct LowerBroadcast : OpConversionPattern<BroadcastInDimOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(BroadcastInDimOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};

struct LowerReshape : OpConversionPattern<ReshapeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReshapeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    StoredTensor operand(adaptor.getOperand(), cast<RankedTensorType>(op.getOperand().getType()));
    StoredTensor result =
        reshapedLogically(rewriter, op.getLoc(), operand, op.getType().getShape());
    rewriter.replaceOp(op, relayout(rewriter, op.getLoc(), result, Layout::of(op.getType())));
    return success();
  }
};

struct LowerTranspose : OpConversionPattern<TransposeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(TransposeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Layout seen =
        Layout::of(cast<RankedTensorType>(op.getOperand().getType())).permuted(op.getPerm());
    StoredTensor result(adaptor.getOperand(), op.getType().getShape(), seen);
    rewriter.replaceOp(op, relayout(rewriter, op.getLoc(), result, Layout::of(op.getType())));
    return success();
  }
};

struct LowerRelayout : OpConversionPattern<RelayoutOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(RelayoutOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    StoredTensor operand(adaptor.getOperand(), cast<RankedTensorType>(op.getOperand().getType()));
    rewriter.replaceOp(op, relayout(rewriter, op.getLoc(), operand, Layout::of(op.getType())));
    return success();
  }
};

struct LowerReverse : OpConversionPattern<ReverseOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReverseOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};

struct LowerIota : OpConversionPattern<IotaOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(IotaOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

LogicalResult LowerBroadcast::matchAndRewrite(BroadcastInDimOp op, OpAdaptor adaptor,
                                              ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  Layout layout = Layout::of(logical);
  RankedTensorType type = storageType(logical);
  if (TypedAttr splat = splatOf(adaptor.getOperand())) {
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, DenseElementsAttr::get(type, splat));
    return success();
  }
  StoredTensor operand(adaptor.getOperand(), cast<RankedTensorType>(op.getOperand().getType()));
  ArrayRef<int64_t> dims = op.getDims();
  auto repeats = [&](int64_t dim) { return operand.shape[dim] == 1; };

  // The operand needs the result's tile, along the dim that becomes the tiled one.
  const int64_t *tiled = llvm::find(dims, layout.tileDim);
  Layout wanted = operand.layout.withoutTile();
  if (tiled != dims.end() && !repeats(tiled - dims.begin()))
    wanted = wanted.withTile(tiled - dims.begin(), layout.tileSize);
  Value input = relayout(rewriter, loc, operand, wanted);

  SmallVector<AffineExpr> reads;
  for (PhysicalDim dim : wanted.dims()) {
    if (repeats(dim.dim))
      reads.push_back(rewriter.getAffineConstantExpr(0));
    else
      reads.push_back(rewriter.getAffineDimExpr(layout.position({dims[dim.dim], dim.part})));
  }
  AffineMap map = AffineMap::get(type.getRank(), 0, reads, getContext());
  rewriter.replaceOp(op, parallelGeneric(rewriter, loc, type, input, map, copyElement));
  return success();
}

LogicalResult LowerReverse::matchAndRewrite(ReverseOp op, OpAdaptor adaptor,
                                            ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  StoredTensor operand(adaptor.getOperand(), logical);
  if (llvm::is_contained(op.getDims(), operand.layout.tileDim))
    operand = untiled(rewriter, loc, operand);
  SmallVector<AffineExpr> reads;
  for (auto [position, dim] : llvm::enumerate(operand.layout.dims())) {
    AffineExpr index = rewriter.getAffineDimExpr(position);
    reads.push_back(llvm::is_contained(op.getDims(), dim.dim) ? operand.shape[dim.dim] - 1 - index
                                                              : index);
  }
  auto type = cast<RankedTensorType>(operand.value.getType());
  AffineMap map = AffineMap::get(type.getRank(), 0, reads, getContext());
  operand.value = parallelGeneric(rewriter, loc, type, operand.value, map, copyElement);
  rewriter.replaceOp(op, relayout(rewriter, loc, operand, Layout::of(logical)));
  return success();
}

LogicalResult LowerIota::matchAndRewrite(IotaOp op, OpAdaptor,
                                         ConversionPatternRewriter &rewriter) const {
  auto logical = cast<RankedTensorType>(op.getType());
  Layout layout = Layout::of(logical);
  Type element = logical.getElementType();
  Value result = parallelGeneric(
      rewriter, op.getLoc(), storageType(logical), {}, {},
      [&](OpBuilder &body, Location loc, ValueRange) -> Value {
        Value index = logicalIndex(body, loc, layout, op.getDim());
        Type compute = computeType(element);
        if (!isa<FloatType>(compute))
          return encode(body, loc, arith::IndexCastOp::create(body, loc, compute, index), element);
        Value integer = arith::IndexCastOp::create(body, loc, body.getI64Type(), index);
        return encode(body, loc, arith::SIToFPOp::create(body, loc, compute, integer), element);
      });
  rewriter.replaceOp(op, result);
  return success();
}

void weft::populateShapeToLinalg(RewritePatternSet &patterns, const TypeConverter &converter) {
  patterns
      .add<LowerBroadcast, LowerReshape, LowerTranspose, LowerRelayout, LowerReverse, LowerIota>(
          converter, patterns.getContext());
}
