// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops that a nest should split in two.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_PARALLELDIM_H
#define WEFT_COMPILER_KERNELS_EMISSION_PARALLELDIM_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"

namespace weft {

/// A dim and a factor that divides its extent, by which an index divides it.
using ParallelDim = std::optional<std::pair<unsigned, int64_t>>;

/// One of the first `dims` of `space` to split: a reduction (as of a group norm over channels), a
/// scan, or memory in runs of at least `width` elements (as of a repeated tensor) depends on a
/// quotient of it.
ParallelDim dividedDim(const AccessAnalysis &demand, const IndexSpace &space, unsigned dims,
                       int64_t width);

} // namespace weft

#endif
