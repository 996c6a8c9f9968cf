// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Removes empty tensors before anything that divides by sizes: after this pass, layouts, schedules
// and cost models see contractions, attention and sorts with at least one element in each dim.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/OpStructure.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft {
#define GEN_PASS_DEF_FOLDEMPTY
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

static bool isEmpty(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && llvm::is_contained(type.getShape(), 0);
}

static Value zeros(OpBuilder &builder, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Attribute zero = builder.getZeroAttr(tensor.getElementType());
  return ConstantOp::create(builder, loc, SplatElementsAttr::get(tensor, zero));
}

/// Whether the results, if not empty, are empty sums: zero.
static bool sumsNothing(Operation *op) {
  auto sum = dyn_cast<SumOpInterface>(op);
  return sum && llvm::any_of(sum.summed(), isEmpty);
}

namespace {

struct FoldEmpty : weft::impl::FoldEmptyBase<FoldEmpty> {
  void runOnOperation() override {
    for (AttentionOp attention : collect<AttentionOp>())
      if (isEmpty(attention.getQuery()) && !isEmpty(attention.getResult()))
        if (failed(decompose(attention)))
          return signalPassFailure();
    for (Operation *op : collect<Operation *>())
      if (isa<WeftDialect>(op->getDialect()) && !isa<ConstantOp, YieldOp>(op) &&
          isMemoryEffectFree(op))
        fold(op);
  }

private:
  template <typename Op> SmallVector<Op> collect() {
    SmallVector<Op> ops;
    getOperation().walk([&](Op op) { ops.push_back(op); });
    return ops;
  }

  /// With empty feature vectors all scores are equal: the result is a mean of values.
  LogicalResult decompose(AttentionOp attention) {
    OpBuilder builder(attention);
    FailureOr<SmallVector<Value>> values = attention.decompose(builder);
    if (failed(values))
      return attention.emitOpError() << "expected a decomposition, found none";
    attention->replaceAllUsesWith(*values);
    attention.erase();
    return success();
  }

  void fold(Operation *op) {
    OpBuilder builder(op);
    for (OpResult result : op->getResults())
      if (isEmpty(result) || sumsNothing(op)) {
        result.replaceAllUsesWith(zeros(builder, op->getLoc(), result.getType()));
        ++numFolded;
      }
    if (op->use_empty())
      op->erase();
  }
};

} // namespace
