// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedule of an attention, as a function of its shape and the target alone.
#ifndef WEFT_COMPILER_SCHEDULING_ATTENTIONCHOICE_H
#define WEFT_COMPILER_SCHEDULING_ATTENTIONCHOICE_H

#include "compiler/Kernels/Attention/AttentionSchedule.h"
#include <optional>

namespace weft {

/// Nothing if blocks of queries in memory are not whole vectors.
std::optional<AttentionSchedule> chooseAttention(const AttentionProblem &problem,
                                                 const TargetInfo &target);

} // namespace weft

#endif
