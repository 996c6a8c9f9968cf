// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the row dot emitter. compiler/Scheduling chooses them.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_ROWDOTSCHEDULE_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_ROWDOTSCHEDULE_H

#include "compiler/Kernels/DotProduct/DotMatch.h"
#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct KernelFunction;

struct RowDotSchedule {
  int64_t columns = 8;    ///< of a register tile
  int64_t rows = 1;       ///< of a register tile
  int64_t width = 16;     ///< lanes of an accumulator
  int64_t chains = 1;     ///< accumulators of each result, which round less and hide latency
  int64_t chunk = 1;      ///< steps for which a block of columns stays in L1
  bool paired = false;    ///< bf16: dot products of pairs of steps
  int64_t claim = 1;      ///< least blocks of columns that a thread claims
  bool prefetch = false;  ///< the tiles of rows prefetch the next columns
  int64_t stepsAhead = 0; ///< prefetch distance of a single tile along its columns, or 0

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("columns"), schedule.columns);
    visit(Field::count("rows"), schedule.rows);
    visit(Field::count("lanes"), schedule.width);
    visit(Field::count("chains"), schedule.chains);
    visit(Field::countOrNone("chunk"), schedule.chunk);
    visit(Field::flag("paired"), schedule.paired);
    visit(Field::count("claim"), schedule.claim);
    visit(Field::flag("prefetch"), schedule.prefetch);
    visit(Field::countOrNone("steps_ahead"), schedule.stepsAhead);
  }

  /// Steps of an operand vector.
  int64_t stepWidth() const { return paired ? 2 * width : width; }
};

/// Contractions whose operands are both contiguous along the reduction.
llvm::LogicalResult emitRowDot(KernelFunction &kernel);

} // namespace weft

#endif
