// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Partitions the nodes of a fusion graph into kernels.
#ifndef WEFT_COMPILER_TRANSFORMS_KERNELGROUPING_H
#define WEFT_COMPILER_TRANSFORMS_KERNELGROUPING_H

#include "compiler/Transforms/FusionGraph.h"

namespace weft {

/// The nodes of one kernel in program order.
struct KernelGroup {
  llvm::SmallVector<mlir::Operation *> nodes;
  /// The only node with its own loops (contraction, window, composite), or null.
  mlir::Operation *anchor = nullptr;
};

/// Each computation of `graph` in exactly one group, of its own unless they are to be fused.
/// Contracting each group to one op keeps the graph acyclic.
std::vector<KernelGroup> groupIntoKernels(const FusionGraph &graph, bool fuse);

} // namespace weft

#endif
