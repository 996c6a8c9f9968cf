// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a sort runs: a part of its schedule. compiler/Scheduling chooses it.
#ifndef WEFT_COMPILER_KERNELS_ORDERING_SORTSCHEDULE_H
#define WEFT_COMPILER_KERNELS_ORDERING_SORTSCHEDULE_H

#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct KernelFunction;

struct SortSchedule {
  /// A list of the best, kept by insertion; those better than a limit, sorted when they are many;
  /// all elements, byte by byte; bools, packed in vectors by which comes first.
  enum Method { List, Candidates, Radix, Partition };
  static constexpr llvm::StringLiteral methodNames[] = {"list", "candidates", "radix", "partition"};

  int64_t width = 1;  ///< lanes of a vector
  int64_t groups = 4; ///< most vectors that are compared with a limit at once
  Method method = Radix;
  int64_t capacity = 0; ///< candidates that are collected before they are sorted

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("lanes"), schedule.width);
    visit(Field::count("groups"), schedule.groups);
    visit(Field::oneOf("method", methodNames), schedule.method);
    visit(Field::countOrNone("capacity"), schedule.capacity);
  }
};

/// One weft.sort.
llvm::LogicalResult emitSort(KernelFunction &kernel);

} // namespace weft

#endif
