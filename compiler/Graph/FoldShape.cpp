// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Folds of constants, of ops that only move elements, and of reductions.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/ConstantFolding.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace weft;

static SmallVector<int64_t> stridesOf(Value value) {
  return computeSuffixProduct(tensorType(value).getShape());
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

OpFoldResult IotaOp::fold(FoldAdaptor) {
  if (getType().getDimSize(getDim()) != 1)
    return {};
  Type element = getType().getElementType();
  if (auto type = dyn_cast<FloatType>(element))
    return DenseElementsAttr::get(getType(), FloatAttr::get(type, 0.0).getValue());
  return intSplat(getType(), 0);
}

OpFoldResult BroadcastInDimOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType() && llvm::is_sorted(getDims()))
    return getOperand();
  // Repeated, a constant of different elements would only take more memory.
  constexpr int64_t fewElements = 64;
  DenseElementsAttr elements = foldable(adaptor.getOperand());
  int64_t count = getType().getNumElements();
  if (elements && !elements.isSplat() && count > std::max(fewElements, elements.getNumElements()))
    return {};
  SmallVector<int64_t> strides = stridesOf(getOperand());
  ArrayRef<int64_t> shape = getOperand().getType().getShape();
  return foldMove(getType(), adaptor.getOperand(), [&](ArrayRef<int64_t> index) {
    int64_t place = 0;
    for (auto [dim, stride, size] : llvm::zip(getDims(), strides, shape))
      place += size == 1 ? 0 : index[dim] * stride;
    return place;
  });
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  // A derivative may follow yet.
  if ((*this)->hasAttr(attr::stopsGradient))
    return {};
  if (getOperand().getType() == getType())
    return getOperand();
  if (DenseElementsAttr elements = foldable(adaptor.getOperand()))
    return elements.reshape(getType());
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType() && llvm::is_sorted(getPerm()))
    return getOperand();
  SmallVector<int64_t> strides = stridesOf(getOperand());
  return foldMove(getType(), adaptor.getOperand(), [&](ArrayRef<int64_t> index) {
    int64_t place = 0;
    for (auto [position, dim] : llvm::zip(index, getPerm()))
      place += position * strides[dim];
    return place;
  });
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  // A slice of its operand's shape is all of it.
  if (getOperand().getType() == getType())
    return getOperand();
  SmallVector<int64_t> strides = stridesOf(getOperand());
  return foldMove(getType(), adaptor.getOperand(), [&](ArrayRef<int64_t> index) {
    int64_t place = 0;
    for (auto [position, start, step, stride] : llvm::zip(index, getStart(), getStride(), strides))
      place += (start + position * step) * stride;
    return place;
  });
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getOperands().size() == 1 && getOperands().front().getType() == getType())
    return getOperands().front();
  return {};
}

OpFoldResult RelayoutOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (auto inner = getOperand().getDefiningOp<RelayoutOp>()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  if (DenseElementsAttr elements = foldable(adaptor.getOperand()))
    return elements.reshape(getType());
  return {};
}

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  if (getDims().empty() && getOperand().getType() == getType())
    return getOperand();
  // Sums and products of a splat would round differently.
  DenseElementsAttr elements = foldable(adaptor.getOperand());
  if (!elements || !elements.isSplat() || getKind() == ReduceKind::sum ||
      getKind() == ReduceKind::prod)
    return {};
  return elements.resizeSplat(getType());
}

OpFoldResult CumulativeOp::fold(FoldAdaptor adaptor) {
  // Running sums of integer zeros; those of floats would lose the sign of a zero.
  bool zeros = adaptor.getOperand() && isIntSplat(adaptor.getOperand(), 0);
  return getKind() == ReduceKind::sum && zeros ? OpFoldResult(adaptor.getOperand())
                                               : OpFoldResult();
}
