// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sums over the lanes of several vectors at once.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_HORIZONTALREDUCTION_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_HORIZONTALREDUCTION_H

#include "mlir/IR/Builders.h"

namespace weft {

/// For each segment of `segment` lanes a vector whose element i is the sum of that segment's lanes
/// of `vectors[i]`. All have the same type, of a power of two of lanes, and there are at most as
/// many as lanes. Vectors are folded in pairs, so that n sums take about n additions instead of n
/// times the logarithm of the lanes.
llvm::SmallVector<mlir::Value> segmentSums(mlir::OpBuilder &builder, mlir::Location loc,
                                           llvm::ArrayRef<mlir::Value> vectors, int64_t segment);

/// A vector whose element i is the sum of all lanes of `vectors[i]`.
mlir::Value horizontalSums(mlir::OpBuilder &builder, mlir::Location loc,
                           llvm::ArrayRef<mlir::Value> vectors);

} // namespace weft

#endif
