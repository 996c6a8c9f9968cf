// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the grouped matmul emitter.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_GROUPEDMATMULSCHEDULE_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_GROUPEDMATMULSCHEDULE_H

#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct KernelFunction;

struct GroupedMatmulSchedule {
  int64_t rows = 6;       ///< matrix rows of a register tile of `groups` vectors
  int64_t narrowRows = 6; ///< of a register tile of fewer vectors
  int64_t groups = 4;     ///< vectors of a register tile, at the most
  int64_t width = 16;     ///< lanes of a vector
  int64_t chunk = 1;      ///< KC, in steps
  int64_t piece = 48;     ///< columns computed together: whole register tiles and vectors
  int64_t slab = 8;       ///< pieces whose sums stay in scratch
  int64_t claim = 1;      ///< least pieces that a thread claims
  int64_t unroll = 4;     ///< steps

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("rows"), schedule.rows);
    visit(Field::count("narrow_rows"), schedule.narrowRows);
    visit(Field::count("groups"), schedule.groups);
    visit(Field::count("lanes"), schedule.width);
    visit(Field::countOrNone("chunk"), schedule.chunk);
    visit(Field::count("piece"), schedule.piece);
    visit(Field::count("slab"), schedule.slab);
    visit(Field::count("claim"), schedule.claim);
    visit(Field::count("unroll"), schedule.unroll);
  }
};

/// One weft.grouped_dot.
llvm::LogicalResult emitGroupedMatmul(KernelFunction &kernel);

} // namespace weft

#endif
