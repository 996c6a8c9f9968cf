// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transposes between rows and token blocks: a part of their schedule. compiler/Scheduling chooses
// it.
#ifndef WEFT_COMPILER_KERNELS_NEST_TRANSPOSESCHEDULE_H
#define WEFT_COMPILER_KERNELS_NEST_TRANSPOSESCHEDULE_H

#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct KernelFunction;

struct TransposeSchedule {
  int64_t width = 1;                       ///< lanes of a vector
  int64_t groups = 4;                      ///< most vectors of a point
  llvm::SmallVector<int64_t> reducedLanes; ///< of each reduction of a row: its dim with the lanes
  int64_t unroll = 16;                     ///< most steps of a reduction that is unrolled
  int64_t claim = 1;                       ///< least cells that a thread claims
  bool interior = false; ///< the root is padded, and the padding stored separately

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("lanes"), schedule.width);
    visit(Field::count("groups"), schedule.groups);
    visit(Field::list(Field::numberOrNone("reduced_lanes")), schedule.reducedLanes);
    visit(Field::countOrNone("unroll"), schedule.unroll);
    visit(Field::count("claim"), schedule.claim);
    visit(Field::flag("interior"), schedule.interior);
  }
};

/// Rows computed from token blocks (lanes are tokens) and stored row-major. Fails on all others.
llvm::LogicalResult emitTokenBlocksToRows(KernelFunction &kernel);

/// Row-major rows, reduced, and stored to token blocks (lanes are tokens). Fails on all others.
llvm::LogicalResult emitRowsToTokenBlocks(KernelFunction &kernel);

} // namespace weft

#endif
