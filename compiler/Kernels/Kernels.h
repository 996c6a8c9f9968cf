// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns one kernel from linalg on tensors into loops, vectors and memrefs.
#ifndef WEFT_COMPILER_KERNELS_KERNELS_H
#define WEFT_COMPILER_KERNELS_KERNELS_H

#include "compiler/Graph/AttributeNames.h"
#include "compiler/Kernels/Emission/ScheduleOverride.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

/// Threads that may claim parts of a kernel.
constexpr int64_t claimants = 64;

/// Replace the body of `kernel`, a private function on tensors marked `weft.kernel`, by
/// loops. Afterwards it takes its operands and then its results as row-major memrefs, a
/// per-thread scratch buffer, where its threads claim parts `weft.claims` sets of counters of
/// these that are zero between calls, the thread's number and the number of threads, and
/// carries `weft.schedule`, `weft.scratch_bytes`, `weft.flops`, `weft.bytes` and, when thread 0
/// does everything, `weft.serial`; results may carry `weft.in_place`. An override that does not fit
/// a contraction is an error.
llvm::LogicalResult emitKernel(mlir::func::FuncOp kernel, const TargetInfo &target,
                               const ScheduleOverride &given = {});

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Kernels/Passes.h.inc"

} // namespace weft

#endif
