// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a scatter is divided among the threads.
#ifndef WEFT_COMPILER_SCHEDULING_SCATTERCHOICE_H
#define WEFT_COMPILER_SCHEDULING_SCATTERCHOICE_H

#include "compiler/Kernels/Nest/ScatterAxes.h"
#include "compiler/Target/TargetInfo.h"

namespace weft {

struct ScatterChoice {
  ScatterSchedule schedule;
  bool isSmall; ///< one thread is as fast as several
};

ScatterChoice chooseScatter(ScatterOp op, const TargetInfo &target);

} // namespace weft

#endif
