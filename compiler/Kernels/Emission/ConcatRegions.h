// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Concatenations along a dim that a loop runs over.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_CONCATREGIONS_H
#define WEFT_COMPILER_KERNELS_EMISSION_CONCATREGIONS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"

namespace weft {

/// Boundaries of concatenation operands along `dim`, ascending, including 0 and the extent of
/// `dim`: between two of them, all elements come from the same operands.
llvm::SmallVector<int64_t> concatBounds(const AccessAnalysis &demand, unsigned dim,
                                        const IndexSpace &space);

} // namespace weft

#endif
