// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which emitters suit which kernels, and the function that chooses the schedule of each: the table
// to which a new emitter is added. Each function is in the file of its emitter's choice.
#ifndef WEFT_COMPILER_SCHEDULING_CHOICES_H
#define WEFT_COMPILER_SCHEDULING_CHOICES_H

#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/ScheduleFields.h"
#include "compiler/Scheduling/ComparedSchedules.h"
#include "compiler/Scheduling/ScheduleOverride.h"
#include "compiler/Target/TargetInfo.h"

namespace weft {

/// Below so many multiply-adds, times two, a barrier and cold caches cost more than other cores
/// gain.
inline constexpr int64_t smallFlops = 400'000, smallDotFlops = 300'000;

/// A kernel on linalg whose schedule is chosen.
struct KernelToSchedule {
  mlir::func::FuncOp kernel;
  const TargetInfo &target;
  ScheduleOverride given;
  bool explains = false; ///< someone reads remarks

  /// What is not divided among the threads: work that is small and not already distributed.
  bool isSerial(bool isSmall) const { return isSmall && !kernel->hasAttr(attr::crossThreadReads); }

  /// A part of the attribute from the struct of its emitter.
  template <typename S> mlir::DictionaryAttr part(const S &schedule) const {
    return writeFields(kernel->getContext(), schedule);
  }
};

/// A schedule but for its emitter: whether thread 0 alone runs the kernel, and the numbers of each
/// part. No parts: the emitter does not suit the kernel.
struct ChosenSchedule {
  bool serial = false;
  llvm::SmallVector<mlir::DictionaryAttr> parts = {};
  llvm::SmallVector<ComparedSchedules, 0> compared = {}; ///< of each part, for remarks

  /// Where the choice of the next part says what it compares; null if nobody reads remarks.
  ComparedSchedules *next(const KernelToSchedule &kernel) {
    return kernel.explains ? &compared.emplace_back() : nullptr;
  }
};

/// Fails, with a diagnostic, on what is given and cannot be honoured.
using ChooseSchedule = llvm::FailureOr<ChosenSchedule>(const KernelToSchedule &);

ChooseSchedule scheduleAttention, scheduleContraction, scheduleGroupedMatmul, scheduleNest,
    scheduleRowDot, scheduleRowsToTokenBlocks, scheduleScatter, scheduleSkinnyMatmul, scheduleSort,
    scheduleTokenBlocksToRows, scheduleWinograd;

struct EmitterChoice {
  llvm::StringLiteral kind;    ///< of the kernel, `weft.kernel`
  llvm::StringLiteral emitter; ///< a name of compiler/Kernels/Emitters.cpp
  ChooseSchedule *choose;
};

/// The first emitter of its kind that suits a kernel is taken: the fastest stands first.
inline constexpr EmitterChoice emitterChoices[] = {
    {"attention", "attention", scheduleAttention},
    {"grouped_dot", "grouped_matmul", scheduleGroupedMatmul},
    {"scatter", "scatter", scheduleScatter},
    {"sort", "sort", scheduleSort},
    {"contraction", "winograd", scheduleWinograd},
    {"contraction", "contraction", scheduleContraction},
    {"contraction", "skinny_matmul", scheduleSkinnyMatmul},
    {"contraction", "row_dot", scheduleRowDot},
    {"contraction", "loop_nest", scheduleNest},
    {"nest", "token_blocks_to_rows", scheduleTokenBlocksToRows},
    {"nest", "rows_to_token_blocks", scheduleRowsToTokenBlocks},
    {"nest", "loop_nest", scheduleNest},
};

} // namespace weft

#endif
