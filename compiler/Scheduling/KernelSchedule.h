// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule of one kernel.
#ifndef WEFT_COMPILER_SCHEDULING_KERNELSCHEDULE_H
#define WEFT_COMPILER_SCHEDULING_KERNELSCHEDULE_H

#include "compiler/Graph/Graph.h"
#include "compiler/Scheduling/ScheduleOverride.h"
#include "compiler/Target/TargetInfo.h"

namespace weft {

/// The schedule of `kernel`, linalg on tensors: the first emitter that suits it, and its numbers.
/// What an attribute `weft.schedule` on it gives is taken: one that is complete as it is, else the
/// emitter, and of a contraction those fields that a ScheduleOverride has. `given` applies to
/// contractions, where the attribute says nothing. Emits an error that names what cannot be
/// honoured.
llvm::FailureOr<ScheduleAttr> scheduleKernel(mlir::func::FuncOp kernel, const TargetInfo &target,
                                             const ScheduleOverride &given = {});

} // namespace weft

#endif
