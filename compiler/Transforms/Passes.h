// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes over the graph dialect and the pipelines made of them.
#ifndef WEFT_COMPILER_TRANSFORMS_PASSES_H
#define WEFT_COMPILER_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace weft {

#define GEN_PASS_DECL
#include "compiler/Transforms/Passes.h.inc"

struct OptimizeOptions : mlir::PassPipelineOptions<OptimizeOptions> {
  Option<int64_t> lanes{*this, "lanes", llvm::cl::desc("f32 lanes of one vector register"),
                        llvm::cl::init(16)};
  Option<int64_t> registers{*this, "registers", llvm::cl::desc("number of vector registers"),
                            llvm::cl::init(32)};
  Option<int64_t> l2Bytes{*this, "l2-bytes", llvm::cl::desc("size of the second-level cache"),
                          llvm::cl::init(1 << 20)};
  Option<bool> matrixUnit{*this, "matrix-unit",
                          llvm::cl::desc("the target multiplies tiles of bf16"),
                          llvm::cl::init(false)};
  Option<int64_t> level{
      *this, "level",
      llvm::cl::desc("0: what kernels need; 1: clean up; 2: rewrite the graph; 3: prepare weights "
                     "and choose layouts"),
      llvm::cl::init(3)};
  Option<bool> bf16{*this, "bf16", llvm::cl::desc("contractions of f32 take bf16 operands"),
                    llvm::cl::init(false)};
};

/// `graph` to `optimized`.
void buildOptimizePipeline(mlir::OpPassManager &manager, const OptimizeOptions &options);

/// Registers `weft-optimize` for textual pipelines.
void registerTransformsPipelines();

#define GEN_PASS_REGISTRATION
#include "compiler/Transforms/Passes.h.inc"

} // namespace weft

#endif
