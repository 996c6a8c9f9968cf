// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which loop of a contraction the threads divide.
#ifndef WEFT_COMPILER_SCHEDULING_CONTRACTIONSPLIT_H
#define WEFT_COMPILER_SCHEDULING_CONTRACTIONSPLIT_H

#include "compiler/Kernels/Contraction/ContractionSchedule.h"

namespace weft {

/// Chooses the split of `grid`, and more row tiles where these divide evenly among the threads:
/// well balanced, and such that each thread finds its data in its own caches. `l2Bytes`: L2
/// capacity of one core.
void chooseSplit(ContractionGrid &grid, const ContractionProblem &problem,
                 const ContractionSchedule &schedule, int64_t l2Bytes);

} // namespace weft

#endif
