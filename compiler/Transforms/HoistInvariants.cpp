// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-hoist-invariants: moves what all steps of a loop compute alike, and is worth it,
// before the loop. Expects each step to be run by one loop, with its layouts chosen.
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

/// Computes `chains` before `loop`, which gives its step `prepared` as further `invariants`.
static LogicalResult hoist(LoopOp loop, func::FuncOp step, MutableOperandRange invariants,
                           ArrayRef<Operation *> chains, ArrayRef<Value> prepared) {
  OpBuilder builder(loop);
  IRMapping mapping;
  OperandRange given = invariants;
  mapping.map(step.getArguments().take_back(given.size()), given);
  for (Operation *op : chains)
    builder.clone(*op, mapping);
  unsigned end = step.getNumArguments();
  auto kind = builder.getDictionaryAttr(
      builder.getNamedAttr(attr::kind, builder.getStringAttr("constant")));
  for (Value value : prepared) {
    unsigned number = step.getNumArguments();
    if (failed(step.insertArgument(number, value.getType(), kind, value.getLoc())))
      return failure();
    invariants.append(mapping.lookup(value));
  }
  for (auto [number, value] : llvm::enumerate(prepared))
    Value(value).replaceAllUsesWith(step.getArgument(end + number));
  for (Operation *op : llvm::reverse(chains))
    if (op->use_empty())
      op->erase();
  return success();
}

/// Packed copies have taken the place of some.
static LogicalResult dropUnusedInvariants(func::FuncOp step, MutableOperandRange invariants) {
  unsigned first = step.getNumArguments() - invariants.size();
  for (unsigned number = step.getNumArguments(); number-- > first;) {
    if (!step.getArgument(number).use_empty())
      continue;
    if (failed(step.eraseArgument(number)))
      return failure();
    invariants.erase(number - first);
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
      if (failed(visitStep(loop, loop.getStep(), &LoopOp::getInvariantsMutable, symbols)))
        return failure();
      if (std::optional<StringRef> rest = loop.getRest())
        if (failed(visitStep(loop, *rest, &LoopOp::getRestInvariantsMutable, symbols)))
          return failure();
    }
    return success();
  }

  LogicalResult visitStep(LoopOp loop, StringRef name,
                          MutableOperandRange (LoopOp::*invariantsOf)(),
                          const SymbolTable &symbols) {
    auto step = symbols.lookup<func::FuncOp>(name);
    if (failed(visit(step, symbols)))
      return failure();
    SmallVector<Value> prepared = findPreparations(step);
    if (failed(
            hoist(loop, step, (loop.*invariantsOf)(), collectChains(step, prepared), prepared)) ||
        failed(dropUnusedInvariants(step, (loop.*invariantsOf)())))
      return failure();
    numHoisted += prepared.size();
    return success();
  }
};

} // namespace
