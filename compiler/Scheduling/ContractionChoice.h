// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule of a contraction, as a function of its shape and the target alone.
#ifndef WEFT_COMPILER_SCHEDULING_CONTRACTIONCHOICE_H
#define WEFT_COMPILER_SCHEDULING_CONTRACTIONCHOICE_H

#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Scheduling/ComparedSchedules.h"
#include "compiler/Scheduling/ScheduleOverride.h"

namespace weft {

/// The values in `given` are taken, and the rest is chosen to suit them. An error names the field
/// of `given` that cannot be honoured, and why. `compared`, unless null, gets what is compared.
llvm::Expected<ContractionSchedule> chooseContraction(const ContractionProblem &problem,
                                                      const TargetInfo &target,
                                                      const ScheduleOverride &given = {},
                                                      ComparedSchedules *compared = nullptr);

} // namespace weft

#endif
