// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns one kernel from linalg on tensors into loops, vectors and memrefs.
#ifndef WEFT_COMPILER_KERNELS_KERNELS_H
#define WEFT_COMPILER_KERNELS_KERNELS_H

#include "compiler/Kernels/Emission/ScheduleOverride.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

/// Threads that may claim parts of a kernel.
constexpr int64_t claimants = 64;

/// On a linalg.generic, [loop over blocks, loop over their lanes, size]: of blocks times lanes
/// that the two loops go through, those from `size` on are nobody's, and need not be computed.
constexpr llvm::StringLiteral paddedAttr = "weft.padded";

/// On an emitted kernel's result, the arguments whose memory it may take if nobody reads them
/// afterwards.
constexpr llvm::StringLiteral inPlaceAttr = "weft.in_place";

/// On a kernel, before it is emitted: it reads what the threads of others have written, each its
/// share. However little there is to do, a thread that goes on with its own share saves the way of
/// the others' from cache to cache.
constexpr llvm::StringLiteral readsSharesAttr = "weft.reads_shares";

/// On a kernel, before it is emitted: its weights come from memory in every call, as the caches do
/// not hold all that its program reads.
constexpr llvm::StringLiteral coldWeightsAttr = "weft.cold_weights";

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
