// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifier, type inference and loops of the ops that put elements in order.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/IterationBuilder.h"
#include "compiler/Graph/OpCost.h"

using namespace mlir;
using namespace weft;

LogicalResult SortOp::check(Adaptor op, ErrorFn error) {
  RankedTensorType type = tensorType(op.getOperand());
  int64_t dim = op.getDim(), count = op.getCount();
  if (failed(checkDim("dim", dim, type.getRank(), error)))
    return failure();
  if (count < 0 || count > type.getDimSize(dim))
    return error() << "expected count to be at least 0 and at most the size of dim " << dim << " ("
                   << type.getDimSize(dim) << "), found " << count;
  return success();
}

SmallVector<Type> SortOp::infer(Adaptor op) {
  RankedTensorType type = tensorType(op.getOperand());
  SmallVector<int64_t> shape(type.getShape());
  shape[op.getDim()] = op.getCount();
  return {RankedTensorType::get(shape, type.getElementType()),
          RankedTensorType::get(shape, IntegerType::get(type.getContext(), 64))};
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static void sortLoops(SortOp op, IterationBuilder &builder) {
  builder.operand(0) = builder.result(1) = builder.loopsOfResult();
  builder.operand(0)[op.getDim()] = {DimAccessKind::Computed, {}};
  builder.isolate();
}

void weft::structureOrder(MLIRContext *context) {
  iterate<SortOp, sortLoops>(context);
  takes<OpWork::functions(32), SortOp>(context);
  place<Placement{.stored = true}, SortOp>(context);
}
