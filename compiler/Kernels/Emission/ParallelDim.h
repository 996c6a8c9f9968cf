// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops that a nest had better divide.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_PARALLELDIM_H
#define WEFT_COMPILER_KERNELS_EMISSION_PARALLELDIM_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"

namespace weft {

/// A dim and a factor by which an index divides it evenly.
using ParallelDim = std::optional<std::pair<unsigned, int64_t>>;

/// One of the first `dims` of `space` for a part of which `demand` has a reduction, as that of a
/// group norm for its channels, or a scan, or memory read in runs, each of at least `width`
/// elements, as that of a tensor that is repeated.
ParallelDim dividedDim(const AccessAnalysis &demand, const IndexSpace &space, unsigned dims,
                       int64_t width);

} // namespace weft

#endif
