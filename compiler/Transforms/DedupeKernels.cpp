// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-dedupe-kernels: expects outlined kernels; leaves one function for all kernels that
// differ only in names, locations and the offsets of slices of their operands.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/RebaseSlices.h"
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

/// A kernel whose slices start at offset 0 of its arguments.
struct Rebased {
  func::FuncOp kernel;
  SmallVector<RebasedArgument> arguments;
};

/// Equivalent kernels; the first replaces the others.
using SameKernels = SmallVector<Rebased, 1>;

/// What a call is rewritten to: the callee, and the offsets by which operands are advanced.
struct Replacement {
  func::FuncOp kernel;
  SmallVector<std::pair<unsigned, int64_t>> offsets;
};

struct DedupeKernelsPass : weft::impl::DedupeKernelsBase<DedupeKernelsPass> {
  void runOnOperation() override;
};

} // namespace

/// The attributes of `kernel` except its name.
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

static std::vector<SameKernels> groupSame(ModuleOp module) {
  std::vector<SameKernels> groups;
  llvm::DenseMap<size_t, SmallVector<size_t, 1>> known; // by hash
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(attr::kernel))
      continue;
    Rebased rebased{kernel, rebaseSlices(kernel)};
    SmallVector<size_t, 1> &candidates = known[hashOf(kernel)];
    auto *same = llvm::find_if(
        candidates, [&](size_t group) { return areSame(kernel, groups[group].front().kernel); });
    if (same != candidates.end()) {
      groups[*same].push_back(std::move(rebased));
      continue;
    }
    candidates.push_back(groups.size());
    groups.push_back({std::move(rebased)});
  }
  return groups;
}

/// Restores slices with the same offset in all of `group`; for others, callers advance the operand.
static void replace(SameKernels &group, llvm::DenseMap<StringAttr, Replacement> &replacements) {
  Rebased &kept = group.front();
  SmallVector<size_t> differing;
  for (auto [index, argument] : llvm::enumerate(kept.arguments)) {
    auto beginsThere = [&](const Rebased &other) {
      return other.arguments[index].offset == argument.offset;
    };
    if (llvm::all_of(group, beginsThere))
      argument.restore();
    else
      differing.push_back(index);
  }
  for (Rebased &rebased : group) {
    Replacement &replacement = replacements[rebased.kernel.getSymNameAttr()];
    replacement.kernel = kept.kernel;
    for (size_t index : differing)
      if (int64_t offset = rebased.arguments[index].offset)
        replacement.offsets.push_back({rebased.arguments[index].number, offset});
  }
}

static void apply(Replacement &replacement, func::CallOp call) {
  OpBuilder builder(call);
  call.setCallee(replacement.kernel.getSymName());
  for (auto [number, offset] : replacement.offsets)
    call.setOperand(number,
                    AdvanceOp::create(builder, call.getLoc(), call.getOperand(number), offset));
}

void DedupeKernelsPass::runOnOperation() {
  llvm::DenseMap<StringAttr, Replacement> replacements;
  std::vector<SameKernels> groups = groupSame(getOperation());
  for (SameKernels &group : groups)
    replace(group, replacements);
  getOperation().walk([&](func::CallOp call) {
    auto it = replacements.find(call.getCalleeAttr().getAttr());
    if (it != replacements.end())
      apply(it->second, call);
  });
  SymbolTable symbols(getOperation());
  for (SameKernels &group : groups)
    for (Rebased &copy : llvm::drop_begin(group)) {
      symbols.erase(copy.kernel);
      ++numRemoved;
    }
}
