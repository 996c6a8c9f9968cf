// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes from graph kernels to linalg, and from loops to LLVM.
#ifndef WEFT_COMPILER_LOWERING_PASSES_H
#define WEFT_COMPILER_LOWERING_PASSES_H

#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Lowering/Passes.h.inc"

/// weft-lower-to-loops for a known target, with scratch memory for `threads` threads.
std::unique_ptr<mlir::Pass> createLowerToLoops(TargetInfo target);

/// Kernels in loops, vectors and memrefs of static shape become LLVM functions that take
/// bare pointers: operands, results, scratch, then thread and threads as i64.
void buildLowerToLLVMPipeline(mlir::OpPassManager &pm);

/// Registers "weft-lower-to-llvm".
void registerLoweringPipelines();

} // namespace weft

#endif
