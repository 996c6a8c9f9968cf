// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and type inference of the ops that read where tensors of indices say.
#include "compiler/Graph/Constraints.h"

using namespace mlir;
using namespace weft;

LogicalResult GatherOp::check(Adaptor op, ErrorFn error) {
  if (op.getIndices().empty() || op.getIndices().size() != op.getIndexedDims().size())
    return error() << "expected one tensor of indices per indexed dim ("
                   << op.getIndexedDims().size() << ", at least 1), found "
                   << op.getIndices().size();
  if (failed(checkDims("indexedDims", op.getIndexedDims(), tensorType(op.getOperand()).getRank(),
                       error)))
    return failure();
  ArrayRef<int64_t> shape = tensorType(op.getIndices().front()).getShape();
  for (auto [number, indices] : llvm::enumerate(op.getIndices()))
    if (failed(checkShape("indices " + std::to_string(number), indices, shape, error)))
      return failure();
  for (int64_t dim : op.getIndexedDims())
    if (tensorType(op.getOperand()).getDimSize(dim) == 0 && llvm::product_of(shape) != 0)
      return error() << "expected indexed dim " << dim << " to hold an element, found size 0";
  return success();
}

SmallVector<Type> GatherOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  SmallVector<int64_t> shape(tensorType(op.getIndices().front()).getShape());
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(op.getIndexedDims(), static_cast<int64_t>(dim)))
      shape.push_back(size);
  return {RankedTensorType::get(shape, type.getElementType())};
}
