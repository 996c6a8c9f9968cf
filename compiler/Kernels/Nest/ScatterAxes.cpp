// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/ScatterAxes.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/ElementEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

/// The loop whose variable `indices` equal at `index`, or null.
static AffineExpr repeatedLoop(Value indices, Index index, const IndexSpace &space) {
  while (auto view = throughView(indices, index, space))
    std::tie(indices, index) = *view;
  auto generic = indices.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumDpsInputs() != 0)
    return nullptr;
  auto cast = generic.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::IndexCastOp>();
  auto iota = cast ? cast.getIn().getDefiningOp<linalg::IndexOp>() : nullptr;
  if (!iota)
    return nullptr;
  FailureOr<Index> iteration = iterationAt(generic, 0, index, space);
  AffineExpr expr = succeeded(iteration) ? (*iteration)[iota.getDim()] : nullptr;
  return isa_and_present<AffineDimExpr>(expr) ? expr : nullptr;
}

ScatterAxes::ScatterAxes(ScatterOp op) : space(op.getContext()) {
  for (int64_t size : tensorType(op.getIndices().front()).getShape())
    loops.push_back(size == 1 ? space.constant(0) : space.addDim(size));
  updateIndex = loops;
  ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
  int64_t rank = shape.size();
  for (int64_t dim = 0; dim < rank;) {
    const int64_t *indexed = llvm::find(op.getIndexedDims(), dim);
    if (indexed != op.getIndexedDims().end()) {
      addIndexed(shape[dim++], op.getIndices()[indexed - op.getIndexedDims().begin()]);
      continue;
    }
    int64_t first = dim;
    while (dim < rank && !llvm::is_contained(op.getIndexedDims(), dim))
      ++dim;
    addRun(shape.slice(first, dim - first));
  }
}

void ScatterAxes::addIndexed(int64_t size, Value indices) {
  AffineExpr follows = repeatedLoop(indices, loops, space);
  if (follows && space.extent(cast<AffineDimExpr>(follows).getPosition()) > size)
    follows = nullptr;
  axes.push_back({size, space.addDim(size), indices, follows});
  copyIndex.push_back(axes.back().variable);
  targetIndex.push_back(follows ? follows : axes.back().variable);
}

void ScatterAxes::addRun(ArrayRef<int64_t> run) {
  int64_t size = ShapedType::getNumElements(run);
  // Size-1 dims need no loop.
  if (size == 1) {
    for (Index *index : {&copyIndex, &targetIndex, &updateIndex})
      index->append(run.size(), space.constant(0));
    return;
  }
  axes.push_back({size, space.addDim(size), Value(), AffineExpr()});
  Index along = space.delinearize(axes.back().variable, run);
  for (Index *index : {&copyIndex, &targetIndex, &updateIndex})
    llvm::append_range(*index, along);
}

int64_t ScatterAxes::countPieces(const Axis &axis, int64_t block) const {
  return isLast(axis) ? llvm::divideCeil(axis.size, block) : axis.size;
}
