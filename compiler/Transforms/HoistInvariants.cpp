// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-hoist-invariants: moves what all steps of a loop compute alike, and is worth it,
// ahead of the loop. Expects each step to be run by one loop, with its layouts chosen.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/Preparations.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace weft {
#define GEN_PASS_DEF_HOISTINVARIANTS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// Computes `chains` ahead of `loop`, which gives its step `prepared` as further invariants.
static LogicalResult hoist(LoopOp loop, func::FuncOp step, ArrayRef<Operation *> chains,
                           ArrayRef<Value> prepared) {
  OpBuilder builder(loop);
  IRMapping mapping;
  mapping.map(step.getArguments().take_back(loop.getInvariants().size()), loop.getInvariants());
  for (Operation *op : chains)
    builder.clone(*op, mapping);
  unsigned end = step.getNumArguments();
  auto kind = builder.getDictionaryAttr(
      builder.getNamedAttr(attr::kind, builder.getStringAttr("constant")));
  for (Value value : prepared) {
    unsigned number = step.getNumArguments();
    if (failed(step.insertArgument(number, value.getType(), kind, value.getLoc())))
      return failure();
    loop.getInvariantsMutable().append(mapping.lookup(value));
  }
  for (auto [number, value] : llvm::enumerate(prepared))
    Value(value).replaceAllUsesWith(step.getArgument(end + number));
  for (Operation *op : llvm::reverse(chains))
    if (op->use_empty())
      op->erase();
  return success();
}

/// Packed copies have taken the place of some.
static LogicalResult dropUnusedInvariants(LoopOp loop, func::FuncOp step) {
  unsigned first = step.getNumArguments() - loop.getInvariants().size();
  for (unsigned number = step.getNumArguments(); number-- > first;) {
    if (!step.getArgument(number).use_empty())
      continue;
    if (failed(step.eraseArgument(number)))
      return failure();
    loop.getInvariantsMutable().erase(number - first);
  }
  return success();
}

namespace {

struct HoistInvariants : weft::impl::HoistInvariantsBase<HoistInvariants> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(attr::entry) && failed(visit(function, symbols)))
        return signalPassFailure();
  }

  /// The loops of a step before that step, so that what they hoist can be hoisted again.
  LogicalResult visit(func::FuncOp function, const SymbolTable &symbols) {
    SmallVector<LoopOp> loops(function.getOps<LoopOp>());
    for (LoopOp loop : loops) {
      auto step = symbols.lookup<func::FuncOp>(loop.getStep());
      if (failed(visit(step, symbols)))
        return failure();
      SmallVector<Value> prepared = findPreparations(step);
      if (failed(hoist(loop, step, collectChains(step, prepared), prepared)) ||
          failed(dropUnusedInvariants(loop, step)))
        return failure();
      numHoisted += prepared.size();
    }
    return success();
  }
};

} // namespace
