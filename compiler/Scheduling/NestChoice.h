// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of nests, and of the transposes between rows and token blocks.
#ifndef WEFT_COMPILER_SCHEDULING_NESTCHOICE_H
#define WEFT_COMPILER_SCHEDULING_NESTCHOICE_H

#include "compiler/Kernels/Nest/NestSchedule.h"
#include "compiler/Kernels/Nest/TransposeSchedule.h"
#include "compiler/Scheduling/WorkEstimate.h"
#include "compiler/Target/TargetInfo.h"

namespace weft {

/// The nests that store the targets of `kernel`, linalg on tensors, in the order in which they run.
llvm::SmallVector<NestSchedule, 1> chooseNests(mlir::func::FuncOp kernel, const WorkEstimate &work,
                                               const TargetInfo &target);

/// `emitter`: one of the two between rows and token blocks. Nothing if it does not suit the kernel.
std::optional<TransposeSchedule> chooseTranspose(mlir::func::FuncOp kernel, EmitterKind emitter,
                                                 const WorkEstimate &work,
                                                 const TargetInfo &target);

} // namespace weft

#endif
