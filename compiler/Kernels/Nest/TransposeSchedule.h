// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transposes between rows and token blocks: a part of their schedule. compiler/Scheduling chooses
// it.
#ifndef WEFT_COMPILER_KERNELS_NEST_TRANSPOSESCHEDULE_H
#define WEFT_COMPILER_KERNELS_NEST_TRANSPOSESCHEDULE_H

#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct TransposeSchedule {
  int64_t width = 1;                       ///< lanes of a vector
  int64_t groups = 4;                      ///< most vectors of a point
  llvm::SmallVector<int64_t> reducedLanes; ///< of each reduction of a row: its dim with the lanes
  int64_t unroll = 16;                     ///< most steps of a reduction that is unrolled
  int64_t claim = 1;                       ///< least cells that a thread claims

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    visit("lanes", schedule.width);
    visit("groups", schedule.groups);
    visit("reduced_lanes", schedule.reducedLanes);
    visit("unroll", schedule.unroll);
    visit("claim", schedule.claim);
  }
};

} // namespace weft

#endif
