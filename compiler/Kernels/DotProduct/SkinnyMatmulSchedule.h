// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the skinny matmul emitter and how they are chosen.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_SKINNYMATMULSCHEDULE_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_SKINNYMATMULSCHEDULE_H

#include "compiler/Target/TargetInfo.h"

namespace weft {

struct SkinnyMatmulProblem {
  int64_t rows, columns, depth;
  unsigned elementBits = 32;
};

/// A vector holds `width / segment` rows, `segment` steps of each. A last row that would be alone
/// in a vector gets vectors of `width` steps instead.
struct SkinnyMatmulSchedule {
  int64_t width = 16;
  int64_t segment = 16; ///< steps of a row in a vector; `width`: one row per vector
  int64_t groups = 1;   ///< row vectors of a register tile
  int64_t columns = 1;  ///< columns of a register tile
  int64_t block = 1;    ///< columns whose sums stay in scratch, a multiple of `columns`
  int64_t chunk = 1;    ///< KC: steps for which a block's rows stay in L1

  int64_t rowsOfVector() const { return width / segment; }
  /// The row vectors of `rows` rows, and whether the last row is alone, in none of these.
  int64_t groupsOf(int64_t rows) const;
  bool lastIsAlone(int64_t rows) const { return segment < width && rows % rowsOfVector() == 1; }

  static SkinnyMatmulSchedule choose(const SkinnyMatmulProblem &problem, const TargetInfo &target);

private:
  int64_t longestChunk(const SkinnyMatmulProblem &problem, const TargetInfo &target) const;
};

} // namespace weft

#endif
