// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the grouped matmul emitter.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_GROUPEDMATMULSCHEDULE_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_GROUPEDMATMULSCHEDULE_H

#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct GroupedMatmulSchedule {
  int64_t rows = 6;   ///< matrix rows of a register tile of `groups` vectors
  int64_t groups = 4; ///< vectors of a register tile, at the most
  int64_t width = 16; ///< lanes of a vector
  int64_t chunk = 1;  ///< KC, in steps

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    visit("rows", schedule.rows);
    visit("groups", schedule.groups);
    visit("lanes", schedule.width);
    visit("chunk", schedule.chunk);
  }
};

} // namespace weft

#endif
