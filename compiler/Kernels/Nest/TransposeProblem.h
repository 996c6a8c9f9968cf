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
  int64_t cells;            ///< equal pieces of work
  bool rowByRow;            ///< a reduction is of one row, without lanes of its own
  int64_t shortest;         ///< the shorter of what is transposed, tokens or features
  int64_t strided;          ///< accesses in the order that the emitter reads in
  int64_t stridedOtherwise; ///< accesses in the order of the result
  int64_t scratchBytes;     ///< that a thread transposes from
  bool isOwn;               ///< there are blocks or reductions, which LoopNest transposes worse
};

/// What is transposed, or nothing if the emitter cannot follow `kernel`. `interior`: of a padded
/// root, the interior alone.
std::optional<TransposeProblem> matchTokenBlocksToRows(KernelFunction &kernel, bool interior);
std::optional<TransposeProblem> matchRowsToTokenBlocks(KernelFunction &kernel, bool interior);

} // namespace weft

#endif
