// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass that chooses how kernels run.
#ifndef WEFT_COMPILER_SCHEDULING_PASSES_H
#define WEFT_COMPILER_SCHEDULING_PASSES_H

#include "compiler/Graph/Graph.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Scheduling/Passes.h.inc"

/// weft-schedule-kernels for a known target; `schedule` as ScheduleOverride::parse takes it.
std::unique_ptr<mlir::Pass> createScheduleKernels(TargetInfo target, llvm::StringRef schedule);

} // namespace weft

#endif
