// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedules of contractions whose vectors run along the reduction, as functions of their shape
// and the target alone.
#ifndef WEFT_COMPILER_SCHEDULING_DOTCHOICE_H
#define WEFT_COMPILER_SCHEDULING_DOTCHOICE_H

#include "compiler/Kernels/DotProduct/RowDotSchedule.h"
#include "compiler/Kernels/DotProduct/SkinnyMatmulSchedule.h"
#include <optional>

namespace weft {

/// Nothing if the packed rows do not fit half of L2, or row dots are no slower, as of few rows.
std::optional<SkinnyMatmulSchedule> chooseSkinnyMatmul(const DotProblem &problem,
                                                       const TargetInfo &target);

RowDotSchedule chooseRowDot(const DotProblem &problem, const TargetInfo &target);

/// Whether the columns exceed half of L2, so that they should be prefetched.
bool fetchesColumns(const DotProblem &problem, const TargetInfo &target);

} // namespace weft

#endif
