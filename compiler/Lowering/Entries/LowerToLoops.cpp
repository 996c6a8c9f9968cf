// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// weft-lower-to-loops: emits every kernel and turns the entries from functions on tensors into
// calls on memrefs and loops of calls (see EntryIR.h). One pass, because calls and callees do not
// match between the two steps.
#include "compiler/Graph/Graph.h"
#include "compiler/Graph/KernelSignature.h"
#include "compiler/Kernels/Kernels.h"
#include "compiler/Lowering/Entries/EntryIR.h"
#include "compiler/Lowering/Entries/EntryRewriter.h"
#include "compiler/Lowering/Passes.h"
#include "compiler/Target/SupposedTarget.h"
#include "llvm/ADT/StringExtras.h"
#include <optional>

using namespace mlir;
using namespace weft;

namespace weft {
#define GEN_PASS_DEF_LOWERTOLOOPS
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// A kernel that is only declared is linked in from elsewhere; it gets the signature
/// that an emitted one would have.
static void declareEmitted(func::FuncOp kernel) {
  kernel.setFunctionType(KernelSignature::ofTensors(kernel).type(kernel.getContext()));
}

/// Takes the loops that the module has for a declared kernel.
static LogicalResult takeLoops(ModuleOp module, func::FuncOp kernel, FlatSymbolRefAttr name,
                               const TargetInfo &target) {
  auto loops = module.lookupSymbol<func::FuncOp>(name.getAttr());
  if (!loops)
    return kernel.emitError("expected a function '") << name.getValue() << "' with its loops";
  return adoptLoops(kernel, loops, target);
}

/// Emits all kernels, and records the number of their inputs.
static LogicalResult emitKernels(ModuleOp module, const TargetInfo &target) {
  auto kernels = llvm::filter_to_vector(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return function->hasAttr(attr::kernel);
  });
  for (func::FuncOp kernel : kernels) {
    if (llvm::any_of(kernel.getArgumentTypes(), llvm::IsaPred<MemRefType>))
      continue; // already emitted
    std::string name = kernel.getName().str();
    int64_t inputs = kernel.getNumArguments();
    if (auto loops = kernel->getAttrOfType<FlatSymbolRefAttr>(attr::loops)) {
      if (failed(takeLoops(module, kernel, loops, target)))
        return failure();
    } else if (kernel.isExternal())
      declareEmitted(kernel);
    else if (failed(emitKernel(kernel, target)))
      return failure();
    auto emitted = module.lookupSymbol<func::FuncOp>(name);
    emitted->setAttr(attr::numInputs,
                     IntegerAttr::get(IntegerType::get(module.getContext(), 64), inputs));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {

struct LowerToLoops : weft::impl::LowerToLoopsBase<LowerToLoops> {
  LowerToLoops() = default;
  LowerToLoops(LowerToLoopsOptions options) : LowerToLoopsBase(std::move(options)) {}
  LowerToLoops(TargetInfo target) : target(std::move(target)) {}
  LowerToLoops(const LowerToLoops &other) : LowerToLoopsBase(other), target(other.target) {}

  LogicalResult initialize(MLIRContext *context) override {
    return supposeTarget(target, isa, threads, context);
  }

  void runOnOperation() override;

  std::optional<TargetInfo> target;
};

} // namespace

/// Records in the manifest what this is compiled for.
static void recordTarget(ModuleOp module, const TargetInfo &target) {
  Builder builder(module.getContext());
  SmallVector<StringRef> features, present;
  StringRef(target.features).split(features, ',', -1, /*KeepEmpty=*/false);
  for (StringRef feature : features)
    if (feature.consume_front("+"))
      present.push_back(feature);
  module->setAttr(attr::cpuFeatures, builder.getStrArrayAttr(present));
  module->setAttr(attr::threads, builder.getI64IntegerAttr(target.threads));
}

void LowerToLoops::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(emitKernels(module, *target)))
    return signalPassFailure();
  SymbolTable symbols(module);
  for (func::FuncOp entry : entriesOf(module))
    if (failed(EntryRewriter(entry, symbols, target->threads).run()))
      return signalPassFailure();
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function->hasAttr(attr::step))
      symbols.erase(function);
  recordTarget(module, *target);
}

std::unique_ptr<Pass> weft::createLowerToLoops(TargetInfo target) {
  return std::make_unique<LowerToLoops>(std::move(target));
}
