// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Horizontal reduction of several vectors at once.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_HORIZONTALREDUCTION_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_HORIZONTALREDUCTION_H

#include "mlir/IR/Builders.h"

namespace weft {

/// For each segment of `segment` lanes, a vector whose element i is the sum of that segment of
/// `vectors[i]`. All vectors have one type, with a power of two of lanes, and there are at most as
/// many as lanes. Folding in pairs takes about n additions for n sums, instead of n log2(lanes).
llvm::SmallVector<mlir::Value> segmentSums(mlir::OpBuilder &builder, mlir::Location loc,
                                           llvm::ArrayRef<mlir::Value> vectors, int64_t segment);

/// A vector whose element i is the sum of all lanes of `vectors[i]`.
mlir::Value horizontalSums(mlir::OpBuilder &builder, mlir::Location loc,
                           llvm::ArrayRef<mlir::Value> vectors);

} // namespace weft

#endif
