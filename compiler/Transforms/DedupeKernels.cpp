// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-dedupe-kernels: expects outlined kernels; leaves one function per kernel
// that differs from the others in more than names and locations.
#include "compiler/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/Hashing.h"

namespace weft {
#define GEN_PASS_DEF_DEDUPEKERNELS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

struct DedupeKernelsPass : weft::impl::DedupeKernelsBase<DedupeKernelsPass> {
  void runOnOperation() override;
};

} // namespace

/// The attributes of `kernel` but for its name.
static SmallVector<NamedAttribute> attributesOf(func::FuncOp kernel) {
  return llvm::filter_to_vector(kernel->getAttrs(), [&](NamedAttribute attribute) {
    return attribute.getName() != kernel.getSymNameAttrName();
  });
}

static llvm::hash_code hashOf(func::FuncOp kernel) {
  llvm::hash_code hash = mlir::hash_value(kernel.getFunctionType());
  for (Operation &op : kernel.front())
    hash = llvm::hash_combine(
        hash, OperationEquivalence::computeHash(&op, OperationEquivalence::ignoreHashValue,
                                                OperationEquivalence::ignoreHashValue,
                                                OperationEquivalence::IgnoreLocations));
  return hash;
}

static bool areSame(func::FuncOp a, func::FuncOp b) {
  return attributesOf(a) == attributesOf(b) &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

void DedupeKernelsPass::runOnOperation() {
  llvm::DenseMap<size_t, SmallVector<func::FuncOp, 1>> kept;
  llvm::DenseMap<StringAttr, func::FuncOp> replacements;
  for (auto kernel : getOperation().getOps<func::FuncOp>()) {
    if (!kernel->hasAttr("weft.kernel"))
      continue;
    SmallVector<func::FuncOp, 1> &candidates = kept[hashOf(kernel)];
    auto *same =
        llvm::find_if(candidates, [&](func::FuncOp other) { return areSame(kernel, other); });
    if (same == candidates.end())
      candidates.push_back(kernel);
    else
      replacements[kernel.getSymNameAttr()] = *same;
  }

  getOperation().walk([&](func::CallOp call) {
    auto it = replacements.find(call.getCalleeAttr().getAttr());
    if (it != replacements.end())
      call.setCallee(it->second.getSymName());
  });
  SymbolTable symbols(getOperation());
  for (auto &[name, kernel] : replacements)
    symbols.erase(symbols.lookup(name));
  numRemoved += replacements.size();
}
