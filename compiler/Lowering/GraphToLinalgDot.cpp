// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// dot_general and multi_dot: one contraction per rhs.
#include "compiler/Lowering/GraphToLinalg.h"
#include "compiler/Lowering/GraphToLinalgContraction.h"

using namespace mlir;
using namespace weft;

namespace {
struct LowerDotGeneral : OpConversionPattern<DotGeneralOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};
struct LowerMultiDot : OpConversionPattern<MultiDotOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(MultiDotOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override;
};

/// Batch and contracted dims of both sides, in pairs.
struct DotDims {
  ArrayRef<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
};
} // namespace

/// The indices of one side's dims: batch dims come first in the result, its free dims from
/// `firstFree` on, contracted dims from `firstReduction` on.
static SmallVector<LinalgContraction::OperandDim> operandDims(int64_t rank, ArrayRef<int64_t> batch,
                                                              ArrayRef<int64_t> contract,
                                                              int64_t firstFree,
                                                              int64_t firstReduction) {
  SmallVector<LinalgContraction::OperandDim> dims;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (const int64_t *it = llvm::find(batch, dim); it != batch.end())
      dims.push_back({it - batch.begin()});
    else if (const int64_t *it = llvm::find(contract, dim); it != contract.end())
      dims.push_back({firstReduction + (it - contract.begin())});
    else
      dims.push_back({firstFree++});
  }
  return dims;
}

static Value emitDot(OpBuilder &builder, Location loc, const StoredTensor &lhs,
                     const StoredTensor &rhs, const DotDims &dims, RankedTensorType logical) {
  int64_t lhsRank = lhs.shape.size(), rhsRank = rhs.shape.size(), rank = logical.getRank();
  int64_t batches = dims.lhsBatch.size();
  SmallVector<int64_t> reductions;
  for (int64_t dim : dims.lhsContract)
    reductions.push_back(lhs.shape[dim]);
  int64_t rhsFree = lhsRank - int64_t(dims.lhsContract.size());
  LinalgContraction::Operand left{
      lhs, operandDims(lhsRank, dims.lhsBatch, dims.lhsContract, batches, rank)};
  LinalgContraction::Operand right{
      rhs, operandDims(rhsRank, dims.rhsBatch, dims.rhsContract, rhsFree, rank)};
  return LinalgContraction(logical.getShape(), reductions)
      .emit(builder, loc, left, right, logical.getElementType(), Layout::of(logical));
}

LogicalResult LowerDotGeneral::matchAndRewrite(DotGeneralOp op, OpAdaptor adaptor,
                                               ConversionPatternRewriter &rewriter) const {
  StoredTensor lhs(adaptor.getLhs(), cast<RankedTensorType>(op.getLhs().getType()));
  StoredTensor rhs(adaptor.getRhs(), cast<RankedTensorType>(op.getRhs().getType()));
  DotDims dims{op.getLhsBatch(), op.getRhsBatch(), op.getLhsContract(), op.getRhsContract()};
  rewriter.replaceOp(
      op, emitDot(rewriter, op.getLoc(), lhs, rhs, dims, cast<RankedTensorType>(op.getType())));
  return success();
}

LogicalResult LowerMultiDot::matchAndRewrite(MultiDotOp op, OpAdaptor adaptor,
                                             ConversionPatternRewriter &rewriter) const {
  StoredTensor lhs(adaptor.getLhs(), cast<RankedTensorType>(op.getLhs().getType()));
  DotDims dims{{}, {}, op.getLhsContract(), op.getRhsContract()};
  SmallVector<Value> products;
  for (auto [value, old, product] :
       llvm::zip_equal(adaptor.getRhs(), op.getRhs(), op.getProducts())) {
    StoredTensor rhs(value, cast<RankedTensorType>(old.getType()));
    products.push_back(
        emitDot(rewriter, op.getLoc(), lhs, rhs, dims, cast<RankedTensorType>(product.getType())));
  }
  rewriter.replaceOp(op, products);
  return success();
}

void weft::populateDotToLinalg(RewritePatternSet &patterns, const TypeConverter &converter) {
  patterns.add<LowerDotGeneral, LowerMultiDot>(converter, patterns.getContext());
}
