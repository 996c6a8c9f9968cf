// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns groups of nodes into private functions.
#ifndef WEFT_COMPILER_TRANSFORMS_KERNELOUTLINING_H
#define WEFT_COMPILER_TRANSFORMS_KERNELOUTLINING_H

#include "compiler/Transforms/KernelGrouping.h"
#include "mlir/IR/SymbolTable.h"

namespace weft {

/// Replaces the computations of `entry` by calls of a new function per group, in topological order;
/// ops with effects keep their order.
void outlineKernels(mlir::func::FuncOp entry, const FusionGraph &graph,
                    llvm::ArrayRef<KernelGroup> groups, mlir::SymbolTable &symbols);

} // namespace weft

#endif
