// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a sort runs: a part of its schedule. compiler/Scheduling chooses it.
#ifndef WEFT_COMPILER_KERNELS_ORDERING_SORTSCHEDULE_H
#define WEFT_COMPILER_KERNELS_ORDERING_SORTSCHEDULE_H

#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct SortSchedule {
  /// A list of the best, kept by insertion; those better than a limit, sorted when they are many;
  /// all elements, byte by byte; bools, packed in vectors by which comes first.
  enum Method { List, Candidates, Radix, Partition };

  int64_t width = 1;  ///< lanes of a vector
  int64_t groups = 4; ///< most vectors that are compared with a limit at once
  Method method = Radix;
  int64_t capacity = 0; ///< candidates that are collected before they are sorted

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    visit("lanes", schedule.width);
    visit("groups", schedule.groups);
    visit("method", schedule.method);
    visit("capacity", schedule.capacity);
  }
};

mlir::Attribute fieldOf(mlir::Builder &builder, SortSchedule::Method method);
void readField(mlir::Attribute field, SortSchedule::Method &method);

} // namespace weft

#endif
