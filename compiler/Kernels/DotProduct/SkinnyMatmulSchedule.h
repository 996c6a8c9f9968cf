// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plain numbers that steer dot products of few rows, and how they are chosen.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_SKINNYMATMULSCHEDULE_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_SKINNYMATMULSCHEDULE_H

#include "compiler/Target/TargetInfo.h"

namespace weft {

struct SkinnyMatmulProblem {
  int64_t rows, columns, depth;
  unsigned elementBits = 32;
};

/// A vector holds `width / segment` rows, of each of them `segment` steps of the sum. A last row
/// that would be alone in one has vectors of `width` steps instead.
struct SkinnyMatmulSchedule {
  int64_t width = 16;
  int64_t segment = 16; ///< the width: vectors of one row each
  int64_t groups = 1;   ///< vectors of rows in a register tile
  int64_t columns = 1;  ///< beside them
  int64_t block = 1;    ///< columns whose sums wait together, a multiple of those of a tile
  int64_t chunk = 1;    ///< steps for which a block's rows stay in the first-level cache

  int64_t rowsOfVector() const { return width / segment; }
  /// Of `rows`: the vectors that hold several, and whether the last is none of these.
  int64_t groupsOf(int64_t rows) const;
  bool lastIsAlone(int64_t rows) const { return segment < width && rows % rowsOfVector() == 1; }

  static SkinnyMatmulSchedule choose(const SkinnyMatmulProblem &problem, const TargetInfo &target);

private:
  int64_t longestChunk(const SkinnyMatmulProblem &problem, const TargetInfo &target) const;
};

} // namespace weft

#endif
