// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes from graph kernels to linalg, and from loops to LLVM.
#ifndef WEFT_COMPILER_LOWERING_PASSES_H
#define WEFT_COMPILER_LOWERING_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Lowering/Passes.h.inc"

/// Kernels in loops, vectors and memrefs of static shape become LLVM functions that take
/// bare pointers: operands, results, scratch, then thread and threads as i64.
void buildLowerToLLVMPipeline(mlir::OpPassManager &pm);

/// Registers "weft-lower-to-llvm".
void registerLoweringPipelines();

} // namespace weft

#endif
