// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions: reduce, reduce_window; cumulative stays an op, on physical types.
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Lowering/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weft;

namespace {
struct LowerReduce : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReduceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
struct LowerReduceWindow : OpConversionPattern<ReduceWindowOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReduceWindowOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
struct ConvertCumulative : OpConversionPattern<CumulativeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(CumulativeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

/// The accumulator type for `element`: f32 for half precision.
static Type accumulatorType(Type element) {
  return isa<FloatType>(element) ? computeType(element) : element;
}

/// Reduces the first input, of logical element type `element`, by `kind`.
static Value emitReduction(OpBuilder &builder, Location loc, ReduceKind kind, Type element,
                           ArrayRef<int64_t> shape, ValueRange inputs, ArrayRef<AffineMap> maps) {
  Type accumulator = accumulatorType(element);
  auto type = RankedTensorType::get(shape, storageElementType(accumulator));
  Value result = reducingGeneric(
      builder, loc, type, reduceIdentity(builder, kind, accumulator), inputs, maps,
      [&](OpBuilder &body, Location loc, ValueRange args) {
        Value next = decode(body, loc, args.front(), element);
        Value sum = decode(body, loc, args.back(), accumulator);
        return encode(body, loc,
                      emitCombine(body, loc, kind, sum, next, hasUnsignedElements(element)),
                      accumulator);
      });
  return narrowed(builder, loc, result, storageElementType(element));
}

/// `layout` of a tensor without `dims`, none of which is tiled.
static Layout withoutDims(const Layout &layout, ArrayRef<int64_t> dims) {
  auto renumbered = [&](int64_t dim) {
    return dim - llvm::count_if(dims, [&](int64_t gone) { return gone < dim; });
  };
  Layout result{{}, layout.hasTile() ? renumbered(layout.tileDim) : -1, layout.tileSize};
  for (int64_t dim : layout.order)
    if (!llvm::is_contained(dims, dim))
      result.order.push_back(renumbered(dim));
  return result;
}

/// The identity over the dims of `layout`, and the projection onto those not in `dims`.
static SmallVector<AffineMap> reductionMaps(Builder &builder, const Layout &layout,
                                            ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> kept;
  SmallVector<PhysicalDim> all = layout.dims();
  for (auto [position, dim] : llvm::enumerate(all))
    if (!llvm::is_contained(dims, dim.dim))
      kept.push_back(builder.getAffineDimExpr(position));
  return {builder.getMultiDimIdentityMap(all.size()),
          AffineMap::get(all.size(), 0, kept, builder.getContext())};
}

LogicalResult LowerReduce::matchAndRewrite(ReduceOp op, OpAdaptor adaptor,
                                           ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  auto operandType = cast<RankedTensorType>(op.getOperand().getType());
  StoredTensor operand(adaptor.getOperand(), operandType);
  // Untile: padding must not be reduced.
  if (llvm::is_contained(op.getDims(), operand.layout.tileDim))
    operand = untiled(rewriter, loc, operand);
  Layout layout = withoutDims(operand.layout, op.getDims());
  Value result = emitReduction(rewriter, loc, op.getKind(), operandType.getElementType(),
                               layout.physicalShape(logical.getShape()), operand.value,
                               reductionMaps(rewriter, operand.layout, op.getDims()));
  rewriter.replaceOp(
      op, relayout(rewriter, loc, {result, logical.getShape(), layout}, Layout::of(logical)));
  return success();
}

LogicalResult LowerReduceWindow::matchAndRewrite(ReduceWindowOp op, OpAdaptor adaptor,
                                                 ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  StoredTensor operand = untiled(
      rewriter, loc, {adaptor.getOperand(), cast<RankedTensorType>(op.getOperand().getType())});
  const Layout &layout = operand.layout;

  int64_t rank = logical.getRank();
  SmallVector<int64_t> window;
  SmallVector<AffineExpr> reads, windowDims;
  for (auto [position, dim] : llvm::enumerate(layout.order)) {
    AffineExpr index = rewriter.getAffineDimExpr(position) * op.getStrides()[dim];
    if (op.getWindow()[dim] != 1) {
      windowDims.push_back(rewriter.getAffineDimExpr(rank + window.size()));
      window.push_back(op.getWindow()[dim]);
      index = index + windowDims.back() * op.getDilations()[dim];
    }
    reads.push_back(index);
  }
  int64_t dims = rank + window.size();
  SmallVector<Value> inputs{operand.value};
  SmallVector<AffineMap> maps{AffineMap::get(dims, 0, reads, getContext())};
  if (!window.empty()) {
    // Never read: its shape gives linalg the window's size.
    inputs.push_back(tensor::EmptyOp::create(rewriter, loc, window, rewriter.getF32Type()));
    maps.push_back(AffineMap::get(dims, 0, windowDims, getContext()));
  }
  maps.push_back(leadingDims(rewriter, dims, rank));
  Value result = emitReduction(rewriter, loc, op.getKind(), logical.getElementType(),
                               layout.physicalShape(logical.getShape()), inputs, maps);
  rewriter.replaceOp(
      op, relayout(rewriter, loc, {result, logical.getShape(), layout}, Layout::of(logical)));
  return success();
}

LogicalResult ConvertCumulative::matchAndRewrite(CumulativeOp op, OpAdaptor adaptor,
                                                 ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  Type element = logical.getElementType();
  if (element.isUnsignedInteger())
    return rewriter.notifyMatchFailure(op, "storage does not tell u8 from i8");
  StoredTensor operand(adaptor.getOperand(), logical);
  Layout plain = Layout::rowMajor(logical.getRank());
  Value value = relayout(rewriter, loc, operand, plain);
  value = CumulativeOp::create(rewriter, loc, value.getType(), op.getKind(), value, op.getDim());
  rewriter.replaceOp(
      op, relayout(rewriter, loc, {value, logical.getShape(), plain}, Layout::of(logical)));
  return success();
}

void weft::populateReduceToLinalg(RewritePatternSet &patterns, const TypeConverter &converter) {
  patterns.add<LowerReduce, LowerReduceWindow, ConvertCumulative>(converter, patterns.getContext());
}
