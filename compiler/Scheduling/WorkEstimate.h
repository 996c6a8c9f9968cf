// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work estimate of a kernel without contractions.
#ifndef WEFT_COMPILER_SCHEDULING_WORKESTIMATE_H
#define WEFT_COMPILER_SCHEDULING_WORKESTIMATE_H

#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

struct WorkEstimate {
  /// `kernel`: in tensor form.
  explicit WorkEstimate(mlir::func::FuncOp kernel);

  /// Whether one thread is as fast as several.
  bool isSmall() const;

  /// Least pieces worth claiming at once, if the work is `cells` equal pieces.
  int64_t leastPieces(int64_t cells) const;

  int64_t elements = 0; ///< elements stored, or read of the largest argument up to a bound
};

} // namespace weft

#endif
