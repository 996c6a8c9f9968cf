// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the schedule of a transpose between rows and token blocks is chosen from.
#ifndef WEFT_COMPILER_KERNELS_NEST_TRANSPOSEPROBLEM_H
#define WEFT_COMPILER_KERNELS_NEST_TRANSPOSEPROBLEM_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

struct TransposeProblem {
  IndexSpace space;
  llvm::SmallVector<ReductionDemand, 0> reductions;
  int64_t cells; ///< equal pieces of work
  bool rowByRow; ///< a reduction is of one row, without lanes of its own
};

/// What is transposed, or nothing if the emitter does not suit `kernel`.
std::optional<TransposeProblem> matchTokenBlocksToRows(KernelFunction &kernel);
std::optional<TransposeProblem> matchRowsToTokenBlocks(KernelFunction &kernel);

} // namespace weft

#endif
