// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedules of contractions whose vectors run along the reduction, as functions of their shape
// and the target alone.
#ifndef WEFT_COMPILER_SCHEDULING_DOTCHOICE_H
#define WEFT_COMPILER_SCHEDULING_DOTCHOICE_H

#include "compiler/Kernels/DotProduct/RowDotSchedule.h"
#include "compiler/Kernels/DotProduct/SkinnyMatmulSchedule.h"
#include "compiler/Scheduling/ComparedSchedules.h"
#include <optional>

namespace weft {

/// Nothing if the packed rows do not fit half of L2, or row dots are no slower, as of few rows.
/// `compared`, unless null, gets what is compared; the same for row dots.
std::optional<SkinnyMatmulSchedule> chooseSkinnyMatmul(const DotProblem &problem,
                                                       const TargetInfo &target,
                                                       ComparedSchedules *compared = nullptr);

RowDotSchedule chooseRowDot(const DotProblem &problem, const TargetInfo &target,
                            ComparedSchedules *compared = nullptr);

/// Whether the columns exceed half of L2, so that they should be prefetched.
bool fetchesColumns(const DotProblem &problem, const TargetInfo &target);

} // namespace weft

#endif
