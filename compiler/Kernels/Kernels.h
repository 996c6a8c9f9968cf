// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns one kernel from linalg on tensors into loops, vectors and memrefs.
#ifndef WEFT_COMPILER_KERNELS_KERNELS_H
#define WEFT_COMPILER_KERNELS_KERNELS_H

#include "compiler/Graph/AttributeNames.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"

namespace weft {

/// Upper bound on the threads that claim work chunks of one kernel.
constexpr int64_t claimants = 64;

/// Replace the body of `kernel`, a private function on tensors marked `weft.kernel`, by loops, as
/// its `weft.schedule` says. An error says what in it cannot be honoured, and why. The kernel
/// then takes its operands and results as row-major memrefs, per-thread scratch, `weft.claims` sets
/// of work-chunk counters (if it has such chunks; the counters are zero between calls), the thread
/// number and the number of threads. It carries `weft.schedule`, `weft.scratch_bytes`,
/// `weft.flops`, `weft.bytes` and, if only thread 0 computes, `weft.serial`; results may carry
/// `weft.in_place`.
llvm::LogicalResult emitKernel(mlir::func::FuncOp kernel, const TargetInfo &target);

/// The loops of a kernel that its author has written: `kernel`, a declaration on tensors, is
/// replaced by `loops`, a private function in the form that emitKernel leaves, which gets its name
/// and attributes. Elementary functions are expanded. Fails if the two do not match.
llvm::LogicalResult adoptLoops(mlir::func::FuncOp kernel, mlir::func::FuncOp loops,
                               const TargetInfo &target);

/// Makes the emitters known to the schedule attribute.
void registerEmitters(mlir::DialectRegistry &registry);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Kernels/Passes.h.inc"

} // namespace weft

#endif
