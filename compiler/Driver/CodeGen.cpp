// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The LLVM dialect becomes machine code. Emitters already made the loops and vectors they
// want, so the IR gets only cheap clean-up; instruction selection and register allocation run
// at their default level, which measured five times faster code than level 0. Entries are a
// straight line of calls that grows with the program: level 0 does them in a thirtieth of the
// time, and what their code takes does not count beside the kernels.
#include "compiler/Driver/CodeGen.h"
#include "compiler/Driver/FatalErrors.h"
#include "compiler/Driver/IntegerBFloat16.h"
#include "compiler/Driver/NarrowMaskedAccesses.h"
#include "compiler/Driver/OneLaneStores.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace mlir;
using namespace weft;

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const TargetInfo &target, llvm::CodeGenOptLevel level) {
  static const bool initialized = [] {
    return !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  }();
  if (!initialized)
    return llvm::createStringError("LLVM has no code generator for this machine");
  llvm::Triple triple(target.triple);
  std::string message;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!backend)
    return llvm::createStringError(message);
  llvm::TargetOptions options;
  options.FunctionSections = true;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, /*CPU=*/"", target.features, options, llvm::Reloc::PIC_, std::nullopt, level));
}

static void setFunctionAttributes(llvm::Module &module, const TargetInfo &target,
                                  StringRef exported) {
  for (llvm::Function &function : module) {
    if (function.isIntrinsic())
      continue;
    if (!function.isDeclaration()) {
      function.addFnAttr("target-features", target.features);
      function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBytes * 8));
      function.addFnAttr("frame-pointer", "none");
    }
    function.setDoesNotThrow();
  }
  for (llvm::GlobalValue &value : module.global_values())
    if (!value.isDeclaration() && !value.hasLocalLinkage() && value.getName() != exported)
      value.setVisibility(llvm::GlobalValue::HiddenVisibility);
}

/// What the lowering leaves behind: stack slots, address arithmetic repeated per access and
/// invariant in its loop. Vectorising and unrolling were the emitter's business.
static void cleanUp(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager pm;
  pm.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  pm.addPass(IntegerBFloat16Pass());
  pm.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  pm.addPass(llvm::SimplifyCFGPass());
  pm.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                   /*UseMemorySSA=*/true));
  // Last: masks are constant once what they compare is.
  pm.addPass(OneLaneStoresPass());
  pm.addPass(NarrowMaskedAccessesPass());
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      pm.run(function, functions);
}

/// The first function with a body: a kernel's module has one.
static std::string nameOf(ModuleOp part) {
  for (auto function : part.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      return function.getName().str();
  return "tables";
}

/// Kernels have modules of their own inside the one that holds the entries.
static bool holdsEntries(ModuleOp part) { return !part->getParentOp(); }

static LogicalResult generateObject(ModuleOp part, const TargetInfo &target, StringRef exported,
                                    llvm::CodeGenFileType form, ObjectCode &object) {
  object.name = nameOf(part);
  llvm::LLVMContext context; // one per object: LLVM's are not shared between threads
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(part, context, object.name);
  if (!module)
    return part.emitError("cannot translate '") << object.name << "' to LLVM IR";
  auto machine = createTargetMachine(target, holdsEntries(part) ? llvm::CodeGenOptLevel::None
                                                                : llvm::CodeGenOptLevel::Default);
  if (!machine)
    return part.emitError() << llvm::toString(machine.takeError());
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  setFunctionAttributes(*module, target, exported);

  std::string message;
  llvm::raw_string_ostream messages(message);
  if (llvm::verifyModule(*module, &messages))
    return part.emitError("LLVM rejects the IR of '") << object.name << "': " << message;
  if (!holdsEntries(part))
    cleanUp(*module, **machine);

  llvm::raw_svector_ostream stream(object.bytes);
  llvm::legacy::PassManager pm;
  if ((*machine)->addPassesToEmitFile(pm, stream, nullptr, form))
    return part.emitError("LLVM cannot write code for ") << target.triple;
  pm.run(*module);
  return success();
}

FailureOr<std::vector<ObjectCode>> weft::generateCode(ModuleOp module, const TargetInfo &target,
                                                      StringRef exported,
                                                      const std::atomic<bool> *cancelled,
                                                      llvm::CodeGenFileType form) {
  SmallVector<ModuleOp> parts{module};
  llvm::append_range(parts, module.getOps<ModuleOp>());
  std::vector<ObjectCode> objects(parts.size());
  if (failed(failableParallelForEachN(
          module.getContext(), 0, parts.size(), [&](size_t i) -> LogicalResult {
            if (cancelled && *cancelled)
              return emitError(parts[i].getLoc()) << "cancelled during code generation";
            LogicalResult generated = failure();
            std::optional<std::string> fatal = fatalErrorIn(
                [&] { generated = generateObject(parts[i], target, exported, form, objects[i]); });
            if (fatal)
              return emitError(parts[i].getLoc())
                     << "LLVM has no code for '" << nameOf(parts[i]) << "': " << *fatal;
            return generated;
          })))
    return failure();
  return objects;
}
