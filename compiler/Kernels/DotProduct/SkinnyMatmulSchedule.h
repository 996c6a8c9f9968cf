// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the skinny matmul emitter. compiler/Scheduling chooses them.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_SKINNYMATMULSCHEDULE_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_SKINNYMATMULSCHEDULE_H

#include "compiler/Kernels/DotProduct/DotMatch.h"
#include "compiler/Kernels/Emission/ScheduleFields.h"
#include "llvm/Support/MathExtras.h"

namespace weft {

struct KernelFunction;

/// A vector holds `width / segment` rows, `segment` steps of each. A last row that would be alone
/// in a vector gets vectors of `width` steps instead.
struct SkinnyMatmulSchedule {
  int64_t width = 16;
  int64_t segment = 16;  ///< steps of a row in a vector; `width`: one row per vector
  int64_t rows = 1;      ///< of a register tile, a multiple of `width / segment`
  int64_t columns = 1;   ///< columns of a register tile
  int64_t block = 1;     ///< columns whose sums stay in scratch, a multiple of `columns`
  int64_t chunk = 1;     ///< KC: steps for which a block's rows stay in L1
  int64_t claim = 1;     ///< least blocks that a thread claims
  bool prefetch = false; ///< prefetch the next columns

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("rows"), schedule.rows);
    visit(Field::count("columns"), schedule.columns);
    visit(Field::count("segment"), schedule.segment);
    visit(Field::count("lanes"), schedule.width);
    visit(Field::countOrNone("chunk"), schedule.chunk);
    visit(Field::count("block"), schedule.block);
    visit(Field::count("claim"), schedule.claim);
    visit(Field::flag("prefetch"), schedule.prefetch);
  }

  int64_t rowsOfVector() const { return width / segment; }
  /// Row vectors of a register tile.
  int64_t groups() const { return rows / rowsOfVector(); }
  /// The row vectors of `all` rows, and whether the last row is alone, in none of these.
  int64_t groupsOf(int64_t all) const {
    return llvm::divideCeil(all - lastIsAlone(all), rowsOfVector());
  }
  bool lastIsAlone(int64_t all) const { return segment < width && all % rowsOfVector() == 1; }
  /// Register tiles that all rows take.
  int64_t tilesOf(int64_t all) const {
    return llvm::divideCeil(groupsOf(all) + lastIsAlone(all), groups());
  }
  /// Elements between the packed rows of two tiles.
  int64_t tilePitch(int64_t depth) const {
    return int64_t(llvm::alignTo(depth, width)) / segment * groups() * width;
  }
};

/// Skinny contractions with both operands contiguous along the reduction.
llvm::LogicalResult emitSkinnyMatmul(KernelFunction &kernel);

} // namespace weft

#endif
