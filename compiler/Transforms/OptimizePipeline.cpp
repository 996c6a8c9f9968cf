// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The `optimized` stage as one pipeline.
#include "compiler/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

static void addCleanup(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void weft::buildOptimizePipeline(OpPassManager &manager, const OptimizeOptions &options) {
  manager.addPass(createInlineCalls());
  manager.addPass(createDropSlopes());
  manager.addNestedPass<func::FuncOp>(createFoldEmpty());
  manager.addNestedPass<func::FuncOp>(createRollLoops());
  if (options.level >= 1)
    addCleanup(manager);
  if (options.level >= 2) {
    manager.addNestedPass<func::FuncOp>(createBatchSteps());
    manager.addNestedPass<func::FuncOp>(createSinkSums());
    manager.addNestedPass<func::FuncOp>(createJoinPads());
    manager.addNestedPass<func::FuncOp>(createJoinProducts(JoinProductsOptions{options.l2Bytes}));
    addCleanup(manager);
  }
  manager.addPass(createOutlineScans());
  if (options.level >= 2)
    manager.addPass(createUnrollLoops());
  // Not with bf16 contractions, as attention computes in f32.
  if (options.level >= 2 && !options.bf16)
    manager.addNestedPass<func::FuncOp>(createFormAttention());
  if (options.level >= 2) {
    manager.addNestedPass<func::FuncOp>(createSimplify(SimplifyOptions{options.lanes}));
    manager.addNestedPass<func::FuncOp>(createMergeMatmuls());
  }
  // What these make of weights is worth it where it is prepared once.
  if (options.level >= 3) {
    manager.addNestedPass<func::FuncOp>(createFoldBatchNorm());
    manager.addNestedPass<func::FuncOp>(createMergeConvs());
  }
  manager.addNestedPass<func::FuncOp>(createWidenAttention());
  if (options.bf16)
    manager.addNestedPass<func::FuncOp>(createLowerPrecision());
  if (options.level >= 1)
    addCleanup(manager);
  if (options.level >= 3)
    manager.addNestedPass<func::FuncOp>(
        createUseWinograd(UseWinogradOptions{options.lanes, options.l2Bytes}));
  manager.addNestedPass<func::FuncOp>(createChooseLayouts(ChooseLayoutsOptions{
      options.lanes, options.registers, options.level < 3, options.l2Bytes, options.matrixUnit}));
  if (options.level >= 3) {
    manager.addPass(createHoistInvariants());
    manager.addPass(createHoistBind());
  }
  manager.addNestedPass<func::FuncOp>(createDecomposeComposites(
      // Measured on 1 to 12 queries, 64 to 2048 keys: with half-empty vectors it costs as much.
      DecomposeCompositesOptions{options.lanes / 2}));
  if (options.level >= 3)
    manager.addNestedPass<func::FuncOp>(createSplitReductions());
  if (options.level >= 1)
    addCleanup(manager);
}

void weft::registerTransformsPipelines() {
  PassPipelineRegistration<OptimizeOptions>(
      "weft-optimize",
      "graph to optimized: inline calls, drop slopes, fold what is empty, roll loops, batch steps, "
      "sink sums, join pads and products, outline scans, unroll loops, form attention, simplify, "
      "merge matmuls, fold batch norms, merge convolutions, widen attention, lower precision, use "
      "Winograd, choose layouts, hoist invariants, bind, decompose, split reductions",
      buildOptimizePipeline);
}
