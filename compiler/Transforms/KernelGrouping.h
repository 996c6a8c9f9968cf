// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which nodes of a fusion graph become one kernel.
#ifndef WEFT_COMPILER_TRANSFORMS_KERNELGROUPING_H
#define WEFT_COMPILER_TRANSFORMS_KERNELGROUPING_H

#include "compiler/Transforms/FusionGraph.h"

namespace weft {

/// The nodes of one kernel in program order.
struct KernelGroup {
  llvm::SmallVector<mlir::Operation *> nodes;
  /// The one node with loops of its own (contraction, window, composite), or null.
  mlir::Operation *anchor = nullptr;
};

/// Every computation of `graph` in exactly one group. Replacing each group by one op
/// leaves a graph without cycles.
std::vector<KernelGroup> groupIntoKernels(const FusionGraph &graph);

} // namespace weft

#endif
