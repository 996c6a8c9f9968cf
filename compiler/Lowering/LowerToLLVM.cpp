// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass pipeline from loops to the LLVM dialect: upstream conversions, in the only order that
// keeps register-tiled accumulators in registers.
#include "compiler/Lowering/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/Transforms/LegalizeForExport.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

/// No canonicalisation while vectors are n-D: it turns a chain of vector.insert into
/// from_elements, which scalarises accumulators.
static void addLoopConversions(OpPassManager &pm) {
  pm.addPass(createConvertVectorToSCFPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
}

static void addLLVMConversions(OpPassManager &pm) {
  ConvertVectorToLLVMPassOptions vector;
  vector.reassociateFPReductions = true;
  vector.vectorTransposeLowering = vector::VectorTransposeLowering::Shuffle16x16;
  pm.addPass(createConvertVectorToLLVMPass(vector));
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions func;
  func.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(func));
  ConvertMathToLLVMPassOptions math;
  math.approximateLog1p = false;
  pm.addPass(createConvertMathToLLVMPass(math));
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void weft::buildLowerToLLVMPipeline(OpPassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createMarkKernelArguments());
  addLoopConversions(pm);
  pm.addPass(createMathToLibm());
  addLLVMConversions(pm);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // The translation to LLVM IR would run this on all modules nested in its own, while other threads
  // translate those: leave it nothing to change.
  pm.addPass(LLVM::createLLVMLegalizeForExportPass());
}

void weft::registerLoweringPipelines() {
  PassPipelineRegistration<>("weft-lower-to-llvm",
                             "Lower kernels from loops and memrefs to the LLVM dialect",
                             buildLowerToLLVMPipeline);
}
