// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replaces composite ops by primitives, through CompositeOpInterface::decompose.
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "compiler/Transforms/Passes.h.inc"

namespace {

int64_t queriesOf(AttentionOp attention) {
  RankedTensorType type = attention.getType();
  return type.getDimSize(type.getRank() - 2);
}

struct DecomposeComposites : impl::DecomposeCompositesBase<DecomposeComposites> {
  using DecomposeCompositesBase::DecomposeCompositesBase;

  void runOnOperation() override {
    SmallVector<CompositeOpInterface> composites;
    getOperation().walk([&](CompositeOpInterface op) {
      auto attention = dyn_cast<AttentionOp>(*op);
      if (!attention || queriesOf(attention) <= queries)
        composites.push_back(op);
    });
    for (CompositeOpInterface op : composites)
      if (failed(replace(op)))
        return signalPassFailure();
  }

private:
  LogicalResult replace(CompositeOpInterface op) {
    OpBuilder builder(op);
    FailureOr<SmallVector<Value>> values = op.decompose(builder);
    if (failed(values))
      return op.emitOpError() << "expected a decomposition, found none";
    op->replaceAllUsesWith(*values);
    op->erase();
    ++numDecomposed;
    return success();
  }
};

} // namespace
} // namespace weft
