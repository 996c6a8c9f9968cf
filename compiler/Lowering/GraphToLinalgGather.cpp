// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gather: a generic over the result that reads the operand at computed indices.
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Lowering/ScalarMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weft;

namespace {
struct LowerGather : OpConversionPattern<GatherOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(GatherOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
} // namespace

/// The stored integer `index`, clamped to a dim of `size`, as index.
static Value clampedIndex(OpBuilder &body, Location loc, Value index, Type element, int64_t size) {
  Type wide = body.getI64Type();
  if (index.getType() != wide)
    index = hasUnsignedElements(element)
                ? arith::ExtUIOp::create(body, loc, wide, index).getResult()
                : arith::ExtSIOp::create(body, loc, wide, index).getResult();
  Value zero = arith::ConstantIntOp::create(body, loc, wide, 0);
  Value last = arith::ConstantIntOp::create(body, loc, wide, size - 1);
  index = arith::MaxSIOp::create(body, loc, index, zero);
  index = arith::MinSIOp::create(body, loc, index, last);
  return arith::IndexCastOp::create(body, loc, body.getIndexType(), index);
}

/// The index along result dim `dim`; lanes of padding read the last element.
static Value boundedIndex(OpBuilder &body, Location loc, const Layout &layout, int64_t dim,
                          int64_t size) {
  Value index = logicalIndex(body, loc, layout, dim);
  if (dim != layout.tileDim || size % layout.tileSize == 0)
    return index;
  Value last = arith::ConstantIndexOp::create(body, loc, size - 1);
  return arith::MinSIOp::create(body, loc, index, last);
}

LogicalResult LowerGather::matchAndRewrite(GatherOp op, OpAdaptor adaptor,
                                           ConversionPatternRewriter &rewriter) const {
  Location loc = op.getLoc();
  auto logical = cast<RankedTensorType>(op.getType());
  Layout layout = Layout::of(logical);
  RankedTensorType type = storageType(logical);
  StoredTensor operand = untiled(
      rewriter, loc, {adaptor.getOperand(), cast<RankedTensorType>(op.getOperand().getType())});
  auto indexType = cast<RankedTensorType>(op.getIndices().front().getType());

  // The indices have the layout of the result's leading dims.
  Layout indexLayout = Layout::rowMajor(indexType.getRank());
  if (layout.hasTile() && layout.tileDim < indexType.getRank())
    indexLayout = indexLayout.withTile(layout.tileDim, layout.tileSize);
  SmallVector<Value> inputs;
  for (auto [value, old] : llvm::zip_equal(adaptor.getIndices(), op.getIndices()))
    inputs.push_back(
        relayout(rewriter, loc, {value, cast<RankedTensorType>(old.getType())}, indexLayout));
  SmallVector<AffineExpr> reads;
  for (PhysicalDim dim : indexLayout.dims())
    reads.push_back(rewriter.getAffineDimExpr(layout.position(dim)));
  SmallVector<AffineMap> maps(inputs.size(),
                              AffineMap::get(type.getRank(), 0, reads, getContext()));

  Value result = parallelGeneric(
      rewriter, loc, type, inputs, maps, [&](OpBuilder &body, Location loc, ValueRange args) {
        SmallVector<Value> at(operand.shape.size());
        int64_t keptDim = indexType.getRank();
        for (auto [dim, size] : llvm::enumerate(operand.shape)) {
          const int64_t *indexed = llvm::find(op.getIndexedDims(), int64_t(dim));
          if (indexed == op.getIndexedDims().end()) {
            at[dim] = boundedIndex(body, loc, layout, keptDim++, size);
            continue;
          }
          int64_t number = indexed - op.getIndexedDims().begin();
          Type element = getElementTypeOrSelf(op.getIndices()[number].getType());
          at[dim] = clampedIndex(body, loc, args[number], element, size);
        }
        SmallVector<Value> physical;
        for (int64_t dim : operand.layout.order)
          physical.push_back(at[dim]);
        return tensor::ExtractOp::create(body, loc, operand.value, physical).getResult();
      });
  rewriter.replaceOp(op, result);
  return success();
}

void weft::populateGatherToLinalg(RewritePatternSet &patterns, const TypeConverter &converter) {
  patterns.add<LowerGather>(converter, patterns.getContext());
}
