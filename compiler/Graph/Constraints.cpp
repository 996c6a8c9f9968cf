// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checks that several ops share.
#include "compiler/Graph/Constraints.h"

using namespace mlir;
using namespace weft;

LogicalResult weft::checkDim(StringRef name, int64_t dim, int64_t rank, ErrorFn error) {
  if (dim >= 0 && dim < rank)
    return success();
  return error() << "expected " << name << " to be at least 0 and below rank " << rank << ", found "
                 << dim;
}

LogicalResult weft::checkDims(StringRef name, ArrayRef<int64_t> dims, int64_t rank, ErrorFn error) {
  SmallVector<bool> seen(rank, false);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen[dim])
      return error() << "expected " << name << " to be distinct dims below rank " << rank
                     << ", found [" << dims << "]";
    seen[dim] = true;
  }
  return success();
}

LogicalResult weft::checkEntries(StringRef name, ArrayRef<int64_t> values, int64_t size,
                                 int64_t least, ErrorFn error) {
  if (static_cast<int64_t>(values.size()) != size ||
      llvm::any_of(values, [&](int64_t value) { return value < least; }))
    return error() << "expected " << name << " to have " << size << " entries of at least " << least
                   << ", found [" << values << "]";
  return success();
}

LogicalResult weft::checkShape(StringRef name, Value value, ArrayRef<int64_t> shape,
                               ErrorFn error) {
  ArrayRef<int64_t> found = tensorType(value).getShape();
  if (found == shape)
    return success();
  return error() << "expected " << name << " of shape [" << shape << "], found [" << found << "]";
}

LogicalResult weft::checkSameElement(StringRef lhsName, Value lhs, StringRef rhsName, Value rhs,
                                     ErrorFn error) {
  Type left = tensorType(lhs).getElementType(), right = tensorType(rhs).getElementType();
  if (left == right)
    return success();
  return error() << "expected " << rhsName << " to have the element type of " << lhsName << " ("
                 << left << "), found " << right;
}

LogicalResult weft::checkNumbers(StringRef name, Value value, ErrorFn error) {
  Type element = tensorType(value).getElementType();
  if (!element.isInteger(1))
    return success();
  return error() << "expected " << name << " to have elements that are numbers, found " << element;
}

LogicalResult weft::checkReduceKind(ReduceKind kind, Type type, ErrorFn error) {
  bool logical = kind == ReduceKind::any || kind == ReduceKind::all;
  if (logical == type.isInteger(1))
    return success();
  return error() << "expected " << (logical ? "elements of i1" : "elements other than i1")
                 << " to reduce by " << stringifyReduceKind(kind) << ", found " << type;
}
