// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much a kernel without contractions has to do, and whether to divide that.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_WORKESTIMATE_H
#define WEFT_COMPILER_KERNELS_EMISSION_WORKESTIMATE_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

struct WorkEstimate {
  explicit WorkEstimate(const KernelFunction &kernel);

  /// Of `cells` equal ones, as many as are worth claiming.
  int64_t leastPieces(int64_t cells) const;

  int64_t elements = 0; ///< stored, or of the largest argument, as far as that matters
  bool serial = false;
};

} // namespace weft

#endif
