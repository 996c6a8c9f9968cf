// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The iteration space shared by the ops of a kernel: grid axes G, which are parallel, and row axes
// R, which every reduction of the kernel reduces.
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

/// Assumptions of domain inference.
enum class InputAlignment {
  Free,   ///< an input may be read at several points
  Shared, ///< whole reads of an input are at the same point
};

/// The domain on which every value of `body` can be computed exactly once: each has domain G or
/// G×R, results at the point itself, others possibly at a shifted one. `anchor`, if any: the node
/// with its own loops (contraction, window, composite), whose result is the grid. Fails if there is
/// none.
mlir::FailureOr<KernelDomain> inferKernelDomain(const FusionGraph &graph, const KernelBody &body,
                                                mlir::Operation *anchor,
                                                InputAlignment alignment = InputAlignment::Free);

} // namespace weft

#endif
