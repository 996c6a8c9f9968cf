// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Normalizes kernels that read slices of their arguments by the offset of the slices.
#ifndef WEFT_COMPILER_TRANSFORMS_REBASESLICES_H
#define WEFT_COMPILER_TRANSFORMS_REBASESLICES_H

#include "compiler/Graph/Graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// An argument that is only read through slices, which have been moved to offset 0.
struct RebasedArgument {
  unsigned number;
  llvm::SmallVector<SliceOp> slices; ///< all of one value
  llvm::SmallVector<int64_t> base;   ///< the common part of their original starts
  int64_t offset;                    ///< of `base` in memory, in elements

  /// Moves the slices back to their original starts.
  void restore();
};

/// Moves the slices of each such argument to offset 0: the kernel then computes the same if callers
/// advance the arguments by `offset`.
llvm::SmallVector<RebasedArgument> rebaseSlices(mlir::func::FuncOp kernel);

} // namespace weft

#endif
