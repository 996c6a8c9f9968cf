// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// conv: a contraction with windowed reads of its input. Groups are an additional dim.
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Lowering/GraphToLinalgContraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weft;

namespace {
struct LowerConv : OpConversionPattern<ConvOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ConvOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

/// (n, c, s...) with zeros around the spatial dims.
static StoredTensor padded(OpBuilder &builder, Location loc, const StoredTensor &input,
                           ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  auto isZero = [](int64_t amount) { return amount == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return input;
  SmallVector<OpFoldResult> before, after;
  SmallVector<int64_t> shape = input.shape;
  for (int64_t dim : input.layout.order) {
    bool spatial = dim >= 2;
    before.push_back(builder.getIndexAttr(spatial ? low[dim - 2] : 0));
    after.push_back(builder.getIndexAttr(spatial ? high[dim - 2] : 0));
    if (spatial)
      shape[dim] += low[dim - 2] + high[dim - 2];
  }
  Type element = getElementTypeOrSelf(input.value.getType());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
  auto type = RankedTensorType::get(input.layout.physicalShape(shape), element);
  return {tensor::PadOp::create(builder, loc, type, input.value, before, after, zero), shape,
          input.layout};
}

/// `shape` with dim `dim` as (groups, size / groups).
static SmallVector<int64_t> grouped(ArrayRef<int64_t> shape, int64_t dim, int64_t groups) {
  SmallVector<int64_t> result(shape);
  result[dim] /= groups;
  result.insert(result.begin() + dim, groups);
  return result;
}

/// The layout of a tensor whose dim 1 is split into two adjacent dims; `layout` is untiled.
static Layout groupedLayout(const Layout &layout) {
  Layout result;
  for (int64_t dim : layout.order) {
    result.order.push_back(dim <= 1 ? dim : dim + 1);
    if (dim == 1)
      result.order.push_back(2);
  }
  return result;
}

LogicalResult LowerConv::matchAndRewrite(ConvOp op, OpAdaptor adaptor,
                                         ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  StoredTensor input(adaptor.getInput(), cast<RankedTensorType>(op.getInput().getType()));
  StoredTensor weight(adaptor.getWeight(), cast<RankedTensorType>(op.getWeight().getType()));
  input = padded(rewriter, loc, untiled(rewriter, loc, input), op.getPadLow(), op.getPadHigh());
  SmallVector<int64_t> resultShape(logical.getShape());
  Layout layout = Layout::of(logical).withoutTile();

  int64_t groups = op.getGroups(), group = groups > 1;
  if (group) {
    input = reshapedLogically(rewriter, loc, input, grouped(input.shape, 1, groups));
    weight = reshapedLogically(rewriter, loc, weight, grouped(weight.shape, 0, groups));
    resultShape = grouped(resultShape, 1, groups);
    layout = groupedLayout(layout);
  }

  // Result (n, [g], o, s...), reductions (k..., c).
  int64_t rank = resultShape.size(), spatial = op.getStrides().size();
  int64_t channels = rank + spatial;
  SmallVector<LinalgContraction::OperandDim> inputDims{{0}}, weightDims;
  if (group) {
    inputDims.push_back({1});
    weightDims.push_back({1});
  }
  inputDims.push_back({channels});
  weightDims.push_back({1 + group});
  weightDims.push_back({channels});
  SmallVector<int64_t> reductions;
  for (int64_t i = 0; i < spatial; ++i) {
    inputDims.push_back({rank + i, op.getDilations()[i], 2 + group + i, op.getStrides()[i]});
    weightDims.push_back({rank + i});
    reductions.push_back(weight.shape[2 + group + i]);
  }
  reductions.push_back(weight.shape[1 + group]);

  Value value = LinalgContraction(resultShape, reductions)
                    .emit(rewriter, loc, {input, inputDims}, {weight, weightDims},
                          logical.getElementType(), layout);
  StoredTensor result =
      reshapedLogically(rewriter, loc, {value, resultShape, layout}, logical.getShape());
  rewriter.replaceOp(op, relayout(rewriter, loc, result, Layout::of(logical)));
  return success();
}

void weft::populateConvToLinalg(RewritePatternSet &patterns, const TypeConverter &converter) {
  patterns.add<LowerConv>(converter, patterns.getContext());
}
