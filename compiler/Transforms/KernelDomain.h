// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The iteration space that the ops of a kernel share: grid axes G, walked in parallel,
// and row axes R, reduced by every reduction of the kernel.
#ifndef WEFT_COMPILER_TRANSFORMS_KERNELDOMAIN_H
#define WEFT_COMPILER_TRANSFORMS_KERNELDOMAIN_H

#include "compiler/Transforms/FusionGraph.h"

namespace weft {

struct KernelDomain {
  int64_t gridSize = 1;
  int64_t rowSize = 1;
  bool hasReduction = false;
  /// Some result of the kernel has one element per point of G×R.
  bool yieldsRows = false;
};

/// What inferring a domain takes for granted.
enum class InputAlignment {
  Free,   ///< an input may be read at several points
  Shared, ///< whoever reads an input whole reads it at the same point
};

/// The domain on which every value of `body` can be computed exactly once: each lies on G
/// or on G×R, results at the point itself, others possibly at a shifted one. `anchor`, if
/// any, is the node with loops of its own (contraction, window, composite), whose result
/// is the grid. Fails when there is none.
mlir::FailureOr<KernelDomain> inferKernelDomain(const FusionGraph &graph, const KernelBody &body,
                                                mlir::Operation *anchor,
                                                InputAlignment alignment = InputAlignment::Free);

} // namespace weft

#endif
