// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stages of compilation and what they need registered.
#include "compiler/Driver/Stages.h"
#include "compiler/Autodiff/Passes.h"
#include "compiler/Graph/Derivative.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Kernels.h"
#include "compiler/Lowering/Passes.h"
#include "compiler/Scheduling/Passes.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace weft;

llvm::Expected<Precision> weft::parsePrecision(StringRef name) {
  if (name == "float32")
    return Precision::Float32;
  if (name == "bf16")
    return Precision::BFloat16;
  return llvm::createStringError("expected precision to be one of: float32, bf16; found '" + name +
                                 "'");
}

static void buildOptimized(OpPassManager &pm, const StageSettings &settings) {
  OptimizeOptions options;
  options.lanes = settings.target.lanes(32);
  options.registers = settings.target.vectorRegisters;
  options.l2Bytes = settings.target.l2Bytes;
  options.matrixUnit = settings.target.hasMatrixUnit;
  options.level = settings.level;
  options.bf16 = settings.precision == Precision::BFloat16;
  buildOptimizePipeline(pm, options);
}

static void buildKernels(OpPassManager &pm, const StageSettings &settings) {
  bool fuses = settings.level >= 1 && !settings.without.contains("weft-fuse-kernels");
  pm.addPass(createFuseKernels(FuseKernelsOptions{fuses}));
  pm.addPass(createDedupeKernels());
  pm.addPass(createBoundKernels());
}

static void buildLinalg(OpPassManager &pm, const StageSettings &) {
  pm.addPass(createLowerToLinalg());
}

static void buildScheduled(OpPassManager &pm, const StageSettings &settings) {
  pm.addPass(createScheduleKernels(settings.target, settings.schedule));
}

static void buildLoops(OpPassManager &pm, const StageSettings &settings) {
  pm.addPass(createLowerToLoops(settings.target));
  pm.addPass(createPlanMemory());
  pm.addPass(createInsertBarriers());
}

/// Every kernel gets a module of its own, so that they are lowered side by side.
static void buildLLVM(OpPassManager &pm, const StageSettings &settings) {
  pm.addPass(createLowerEntries());
  OpPassManager &kernels = pm.nest<ModuleOp>();
  // Who asked for products of bf16 gets them from instructions that know no denormals.
  if (!settings.target.hasBFloat16 || settings.precision == Precision::Float32)
    kernels.addPass(createExpandBFloat16({settings.target.hasBFloat16}));
  buildLowerToLLVMPipeline(kernels);
}

llvm::ArrayRef<Stage> weft::stages() {
  static const Stage table[] = {
      {"graph", [](OpPassManager &, const StageSettings &) {}},
      {"optimized", buildOptimized},
      {"kernels", buildKernels},
      {"linalg", buildLinalg},
      {"scheduled", buildScheduled},
      {"loops", buildLoops},
      {"llvm", buildLLVM},
  };
  return table;
}

llvm::Expected<llvm::ArrayRef<Stage>> weft::stagesBetween(StringRef from, StringRef to) {
  llvm::ArrayRef<Stage> all = stages();
  std::string choices =
      llvm::join(llvm::map_range(all, [](const Stage &stage) { return stage.name.str(); }), ", ");
  auto find = [&](StringRef name) {
    return llvm::find_if(all, [&](const Stage &stage) { return stage.name == name; });
  };
  const Stage *first = find(from), *last = find(to);
  for (auto [stage, name] : {std::pair(first, from), std::pair(last, to)})
    if (stage == all.end())
      return llvm::createStringError("expected stage to be one of: " + choices + "; found '" +
                                     name + "'");
  if (first > last)
    return llvm::createStringError("expected a stage not before '" + from + "', found '" + to +
                                   "'");
  return llvm::ArrayRef<Stage>(first + 1, last + 1);
}

void weft::registerDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, index::IndexDialect, linalg::LinalgDialect, LLVM::LLVMDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
                  ub::UBDialect, vector::VectorDialect, WeftDialect>();
  registerDerivatives(registry);
  registerEmitters(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

void weft::registerPasses() {
  registerCanonicalizerPass();
  registerCSEPass();
  registerConversionPasses();
  memref::registerExpandStridedMetadataPass();
  registerWeftAutodiffPasses();
  registerWeftTransformsPasses();
  registerTransformsPipelines();
  registerWeftSchedulingPasses();
  registerWeftKernelsPasses();
  registerWeftLoweringPasses();
  registerLoweringPipelines();
}
