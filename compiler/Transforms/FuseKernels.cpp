// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-fuse-kernels: expects entries of primitive weft ops (and attention) with
// their layouts chosen, which may call primitive functions; leaves entries that only call kernels,
// check and fall back.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/KernelGrouping.h"
#include "compiler/Transforms/KernelOutlining.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft {
#define GEN_PASS_DEF_FUSEKERNELS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

struct FuseKernelsPass : weft::impl::FuseKernelsBase<FuseKernelsPass> {
  using FuseKernelsBase::FuseKernelsBase;
  void runOnOperation() override;
};

} // namespace

/// A computation without uses would become a kernel without results.
static void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Reduces asserted conditions to one bool, so that the reduction is part of a kernel.
static void reduceAssertedConditions(Block &block) {
  for (auto check : block.getOps<AssertOp>()) {
    Value condition = check.getCondition();
    int64_t rank = cast<RankedTensorType>(condition.getType()).getRank();
    if (rank == 0)
      continue;
    OpBuilder builder(check);
    auto all = ReduceOp::create(builder, check.getLoc(), ReduceKind::all, condition,
                                llvm::to_vector(llvm::seq<int64_t>(0, rank)));
    check.getConditionMutable().assign(all.getResult());
  }
}

/// A constant that leaves the entry, or that a fallback reads, is stored by a kernel of its own.
/// The kernels that use it keep one beside it: some need its value, as a padding does.
static void separateStoredConstants(Block &block) {
  auto isStoredFor = [](OpOperand &use) {
    return use.getOwner()->hasTrait<OpTrait::IsTerminator>() || !isMemoryEffectFree(use.getOwner());
  };
  for (auto constant : llvm::make_early_inc_range(block.getOps<ConstantOp>())) {
    if (llvm::all_of(constant->getUses(), isStoredFor) ||
        llvm::none_of(constant->getUses(), isStoredFor))
      continue;
    Value stored = OpBuilder(constant).clone(*constant)->getResult(0);
    constant.getResult().replaceUsesWithIf(stored, isStoredFor);
  }
}

/// Puts the bodies of primitive functions in place of their calls, each op marked with the
/// function's name and the number of the call, from which FusionGraph tells what stays together.
static void inlinePrimitives(Block &block, const SymbolTable &symbols) {
  SmallVector<func::CallOp> calls(block.getOps<func::CallOp>());
  for (auto [number, call] : llvm::enumerate(calls)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || !callee->hasAttr(attr::primitive) || callee->hasAttr(attr::kernel))
      continue;
    OpBuilder builder(call);
    IRMapping mapping;
    mapping.map(callee.getArguments(), call.getOperands());
    Attribute unit =
        builder.getArrayAttr({callee.getSymNameAttr(), builder.getI64IntegerAttr(number)});
    for (Operation &op : callee.front().without_terminator())
      builder.clone(op, mapping)->setAttr(attr::primitive, unit);
    for (auto [result, value] :
         llvm::zip_equal(call.getResults(), callee.front().getTerminator()->getOperands()))
      result.replaceAllUsesWith(mapping.lookupOrDefault(value));
    call.erase();
  }
}

/// Kernels take the names of the functions that they are made of.
static void erasePrimitives(ModuleOp module, SymbolTable &symbols) {
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function->hasAttr(attr::primitive) && !function->hasAttr(attr::kernel) &&
        function.isPrivate() && SymbolTable::symbolKnownUseEmpty(function, module))
      symbols.erase(function);
}

void FuseKernelsPass::runOnOperation() {
  SymbolTable symbols(getOperation());
  for (auto entry : getOperation().getOps<func::FuncOp>())
    if (entry->hasAttr(attr::entry))
      inlinePrimitives(entry.front(), symbols);
  erasePrimitives(getOperation(), symbols);
  for (auto entry : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
    if (!entry->hasAttr(attr::entry) && !entry->hasAttr(attr::step))
      continue;
    eraseDeadOps(entry.front());
    reduceAssertedConditions(entry.front());
    separateStoredConstants(entry.front());
    FailureOr<FusionGraph> graph = FusionGraph::build(entry);
    if (failed(graph))
      return signalPassFailure();
    std::vector<KernelGroup> groups = groupIntoKernels(*graph, fuse);
    numKernels += groups.size();
    outlineKernels(entry, *graph, groups, symbols);
  }
}
