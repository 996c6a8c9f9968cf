// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that read parts of their operands, apart from where the parts begin.
#ifndef WEFT_COMPILER_TRANSFORMS_REBASESLICES_H
#define WEFT_COMPILER_TRANSFORMS_REBASESLICES_H

#include "compiler/Graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// An argument that its kernel reads through slices alone, which now begin at its start.
struct RebasedArgument {
  unsigned number;
  llvm::SmallVector<SliceOp> slices; ///< all of one value
  llvm::SmallVector<int64_t> base;   ///< what their starts had in common
  int64_t offset;                    ///< of `base` in memory, in elements

  /// Lets the slices begin where they did.
  void restore();
};

/// Moves the slices of every such argument to its start: the kernel computes the same of
/// arguments that callers advance by the offsets.
llvm::SmallVector<RebasedArgument> rebaseSlices(mlir::func::FuncOp kernel);

} // namespace weft

#endif
