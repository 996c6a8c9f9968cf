// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and type inference of the ops that combine elements along dims.
#include "compiler/Graph/Constraints.h"

using namespace mlir;
using namespace weft;

static Type withoutDims(RankedTensorType type, ArrayRef<int64_t> dims, Type element) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return RankedTensorType::get(shape, element);
}

LogicalResult ReduceOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  if (failed(checkDims("dims", op.getDims(), type.getRank(), error)))
    return failure();
  return checkReduceKind(op.getKind(), type.getElementType(), error);
}

SmallVector<Type> ReduceOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  return {withoutDims(type, op.getDims(), type.getElementType())};
}

LogicalResult ArgReduceOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  if (failed(checkDim("dim", op.getDim(), type.getRank(), error)))
    return failure();
  if (op.getKind() != ReduceKind::max && op.getKind() != ReduceKind::min)
    return error() << "expected kind max or min, found " << stringifyReduceKind(op.getKind());
  if (type.getDimSize(op.getDim()) == 0)
    return error() << "expected dim " << op.getDim() << " to hold an element, found size 0";
  return success();
}

SmallVector<Type> ArgReduceOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  return {withoutDims(type, op.getDim(), IntegerType::get(type.getContext(), 64))};
}

LogicalResult CumulativeOp::verify() {
  auto error = [&] { return emitOpError(); };
  if (failed(checkDim("dim", getDim(), getType().getRank(), error)))
    return failure();
  return checkReduceKind(getKind(), getType().getElementType(), error);
}

LogicalResult ReduceWindowOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  int64_t rank = type.getRank();
  if (failed(checkReduceKind(op.getKind(), type.getElementType(), error)) ||
      failed(checkEntries("window", op.getWindow(), rank, 1, error)) ||
      failed(checkEntries("strides", op.getStrides(), rank, 1, error)) ||
      failed(checkEntries("dilations", op.getDilations(), rank, 1, error)))
    return failure();
  for (auto [dim, size, window, dilation] :
       llvm::enumerate(type.getShape(), op.getWindow(), op.getDilations()))
    if (int64_t extent = (window - 1) * dilation + 1; extent > size)
      return error() << "expected a window of extent " << extent << " to fit dim " << dim
                     << ", found size " << size;
  return success();
}

SmallVector<Type> ReduceWindowOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  SmallVector<int64_t> shape;
  for (auto [size, window, stride, dilation] :
       llvm::zip(type.getShape(), op.getWindow(), op.getStrides(), op.getDilations()))
    shape.push_back((size - (window - 1) * dilation - 1) / stride + 1);
  return {RankedTensorType::get(shape, type.getElementType())};
}
