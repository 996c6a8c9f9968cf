// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and type inference of constants and of the ops that only move elements.
#include "compiler/Graph/Constraints.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

LogicalResult IotaOp::verify() {
  RankedTensorType type = getType();
  auto error = [&] { return emitOpError(); };
  if (failed(checkDim("dim", getDim(), type.getRank(), error)))
    return failure();
  if (type.getElementType().isInteger(1))
    return emitOpError() << "expected elements that count, found " << type.getElementType();
  return success();
}

LogicalResult BroadcastInDimOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  auto error = [&] { return emitOpError(); };
  if (static_cast<int64_t>(getDims().size()) != from.getRank())
    return emitOpError() << "expected one entry of dims per operand dim (" << from.getRank()
                         << "), found " << getDims().size();
  if (failed(checkDims("dims", getDims(), to.getRank(), error)))
    return failure();
  for (auto [dim, size, place] : llvm::enumerate(from.getShape(), getDims()))
    if (size != 1 && size != to.getDimSize(place))
      return emitOpError() << "expected operand dim " << dim << " (" << size
                           << ") to be 1 or equal result dim " << place << " ("
                           << to.getDimSize(place) << ")";
  return checkSameElement("operand", getOperand(), "result", getResult(), error);
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "expected a result of " << from.getNumElements() << " elements, found "
                         << to.getNumElements();
  return checkSameElement("operand", getOperand(), "result", getResult(),
                          [&] { return emitOpError(); });
}

LogicalResult TransposeOp::check(Adaptor op, ErrorFn error) {
  int64_t rank = tensorType(op.getOperand()).getRank();
  if (static_cast<int64_t>(op.getPerm().size()) != rank)
    return error() << "expected perm to have " << rank << " entries, found " << op.getPerm().size();
  return checkDims("perm", op.getPerm(), rank, error);
}

SmallVector<Type> TransposeOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  SmallVector<int64_t> shape;
  for (int64_t dim : op.getPerm())
    shape.push_back(type.getDimSize(dim));
  return {RankedTensorType::get(shape, type.getElementType())};
}

LogicalResult SliceOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  int64_t rank = type.getRank();
  if (failed(checkEntries("start", op.getStart(), rank, 0, error)) ||
      failed(checkEntries("limit", op.getLimit(), rank, 0, error)) ||
      failed(checkEntries("stride", op.getStride(), rank, 1, error)))
    return failure();
  for (auto [dim, start, limit, size] :
       llvm::enumerate(op.getStart(), op.getLimit(), type.getShape()))
    if (start > limit || limit > size)
      return error() << "expected start (" << start << ") to be at most limit (" << limit
                     << "), and limit at most the size (" << size << ") of dim " << dim;
  return success();
}

SmallVector<Type> SliceOp::infer(Adaptor op) {
  SmallVector<int64_t> shape;
  for (auto [start, limit, stride] : llvm::zip(op.getStart(), op.getLimit(), op.getStride()))
    shape.push_back(llvm::divideCeil(limit - start, stride));
  return {RankedTensorType::get(shape, tensorType(op.getOperand()).getElementType())};
}

LogicalResult AdvanceOp::verify() {
  int64_t elements = physicalType(getOperand().getType()).getNumElements(), offset = getOffset();
  if (offset < 0 || offset > elements)
    return emitOpError() << "expected an offset from 0 to " << elements << ", found " << offset;
  return success();
}

LogicalResult PadOp::check(Adaptor op, ErrorFn error) {
  int64_t rank = tensorType(op.getOperand()).getRank();
  if (failed(checkShape("value", op.getValue(), {}, error)) ||
      failed(checkSameElement("operand", op.getOperand(), "value", op.getValue(), error)) ||
      failed(checkEntries("low", op.getLow(), rank, 0, error)))
    return failure();
  return checkEntries("high", op.getHigh(), rank, 0, error);
}

SmallVector<Type> PadOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  SmallVector<int64_t> shape;
  for (auto [size, low, high] : llvm::zip(type.getShape(), op.getLow(), op.getHigh()))
    shape.push_back(low + size + high);
  return {RankedTensorType::get(shape, type.getElementType())};
}

LogicalResult ConcatOp::check(Adaptor op, ErrorFn error) {
  if (op.getOperands().empty())
    return error() << "expected at least one operand, found none";
  RankedTensorType first = tensorType(op.getOperands().front());
  int64_t dim = op.getDim();
  if (failed(checkDim("dim", dim, first.getRank(), error)))
    return failure();
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    std::string name = "operand " + std::to_string(index);
    SmallVector<int64_t> shape(first.getShape());
    if (tensorType(operand).getRank() == first.getRank())
      shape[dim] = tensorType(operand).getDimSize(dim);
    if (failed(checkSameElement("operand 0", op.getOperands().front(), name, operand, error)) ||
        failed(checkShape(name, operand, shape, error)))
      return failure();
  }
  return success();
}

SmallVector<Type> ConcatOp::infer(Adaptor op) {
  RankedTensorType first = tensorType(op.getOperands().front());
  SmallVector<int64_t> shape(first.getShape());
  shape[op.getDim()] = 0;
  for (Value operand : op.getOperands())
    shape[op.getDim()] += tensorType(operand).getDimSize(op.getDim());
  return {RankedTensorType::get(shape, first.getElementType())};
}

LogicalResult ReverseOp::verify() {
  return checkDims("dims", getDims(), getType().getRank(), [&] { return emitOpError(); });
}

LogicalResult RelayoutOp::verify() {
  if (equalUpToLayout(getOperand().getType(), getType()))
    return success();
  return emitOpError() << "expected operand and result to differ in nothing but layout, found "
                       << getOperand().getType() << " and " << getType();
}
