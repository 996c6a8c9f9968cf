// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a sort runs.
#ifndef WEFT_COMPILER_SCHEDULING_SORTCHOICE_H
#define WEFT_COMPILER_SCHEDULING_SORTCHOICE_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Ordering/SortSchedule.h"
#include "compiler/Target/TargetInfo.h"

namespace weft {

SortSchedule chooseSort(SortOp op, const TargetInfo &target);

/// Whether one thread is as fast as several.
bool isSmallSort(SortOp op);

} // namespace weft

#endif
