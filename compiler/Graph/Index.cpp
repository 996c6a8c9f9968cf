// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers, type inference and loops of the ops that read and write where tensors of indices say.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/IterationBuilder.h"
#include "compiler/Graph/OpCost.h"

using namespace mlir;
using namespace weft;

/// `indices` are tensors of one shape, one for each of `indexedDims` of a tensor of `rank`.
static LogicalResult checkIndices(ValueRange indices, ArrayRef<int64_t> indexedDims, int64_t rank,
                                  ErrorFn error) {
  if (indices.empty() || indices.size() != indexedDims.size())
    return error() << "expected one tensor of indices per indexed dim (" << indexedDims.size()
                   << ", at least 1), found " << indices.size();
  if (failed(checkDims("indexedDims", indexedDims, rank, error)))
    return failure();
  ArrayRef<int64_t> shape = tensorType(indices.front()).getShape();
  for (auto [number, each] : llvm::enumerate(indices))
    if (failed(checkShape("indices " + std::to_string(number), each, shape, error)))
      return failure();
  return success();
}

/// The shape of the indices, then the dims of `operand` that are not indexed.
static SmallVector<int64_t> indexedShape(Value operand, Value indices,
                                         ArrayRef<int64_t> indexedDims) {
  SmallVector<int64_t> shape(tensorType(indices).getShape());
  for (auto [dim, size] : llvm::enumerate(tensorType(operand).getShape()))
    if (!llvm::is_contained(indexedDims, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return shape;
}

LogicalResult GatherOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  if (failed(checkIndices(op.getIndices(), op.getIndexedDims(), type.getRank(), error)))
    return failure();
  for (int64_t dim : op.getIndexedDims())
    if (type.getDimSize(dim) == 0 && tensorType(op.getIndices().front()).getNumElements() != 0)
      return error() << "expected indexed dim " << dim << " to hold an element, found size 0";
  return success();
}

SmallVector<Type> GatherOp::infer(Adaptor op) {
  return {RankedTensorType::get(
      indexedShape(op.getOperand(), op.getIndices().front(), op.getIndexedDims()),
      tensorType(op.getOperand()).getElementType())};
}

LogicalResult ScatterOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  if (failed(checkIndices(op.getIndices(), op.getIndexedDims(), type.getRank(), error)))
    return failure();
  SmallVector<int64_t> shape =
      indexedShape(op.getOperand(), op.getIndices().front(), op.getIndexedDims());
  if (failed(checkShape("updates", op.getUpdates(), shape, error)) ||
      failed(checkSameElement("operand", op.getOperand(), "updates", op.getUpdates(), error)))
    return failure();
  bool counts = op.getKind() == ScatterKind::sum || op.getKind() == ScatterKind::prod;
  if (counts && type.getElementType().isInteger(1))
    return error() << "expected elements other than i1 to combine by "
                   << stringifyScatterKind(op.getKind()) << ", found " << type.getElementType();
  return success();
}

SmallVector<Type> ScatterOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  return {RankedTensorType::get(type.getShape(), type.getElementType())};
}

/// Nothing to write.
OpFoldResult ScatterOp::fold(FoldAdaptor) {
  bool writes = tensorType(getUpdates()).getNumElements() != 0;
  return writes || getOperand().getType() != getType() ? OpFoldResult() : getOperand();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static void gatherLoops(GatherOp op, IterationBuilder &builder) {
  TensorAccess &result = builder.loopsOfResult();
  size_t indexRank = op.getIndices().empty() ? 0 : tensorType(op.getIndices().front()).getRank();
  size_t next = indexRank;
  for (size_t dim = 0; dim < builder.operand(0).size(); ++dim) {
    if (llvm::is_contained(op.getIndexedDims(), int64_t(dim)))
      builder.operand(0)[dim].kind = DimAccessKind::Computed;
    else
      builder.operand(0)[dim] = result[next++];
  }
  for (unsigned number = 1; number < op->getNumOperands(); ++number)
    builder.operand(number) = TensorAccess(result.begin(), result.begin() + indexRank);
}

static void scatterLoops(ScatterOp op, IterationBuilder &builder) {
  builder.operand(0) = builder.loopsOfResult();
  for (unsigned number = 1; number < op->getNumOperands(); ++number)
    for (DimAccess &dim : builder.operand(number))
      dim.kind = DimAccessKind::Computed;
  builder.isolate();
}

void weft::structureIndex(MLIRContext *context) {
  iterate<GatherOp, gatherLoops>(context);
  iterate<ScatterOp, scatterLoops>(context);
  place<Placement{.repeated = true}, GatherOp>(context);
  place<Placement{.stored = true}, ScatterOp>(context);
}
