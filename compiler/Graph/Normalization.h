// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the meaning of a norm and its derivative have in common. Both write the same ops, so that
// statistics are computed once.
#ifndef WEFT_COMPILER_GRAPH_NORMALIZATION_H
#define WEFT_COMPILER_GRAPH_NORMALIZATION_H

#include "compiler/Graph/ComputeBuilder.h"

namespace weft {

/// x less its mean, and 1 / sqrt(variance + eps) without the dims reduced.
struct Normalized {
  mlir::Value centred, inverse;
};

/// `x` normalized by its mean and variance over `dims`.
Normalized normalizedOver(ComputeBuilder &b, mlir::Value x, llvm::ArrayRef<int64_t> dims,
                          double eps);
/// 1 / sqrt(mean(x^2) + eps) over `dims`.
mlir::Value inverseRootMeanSquare(ComputeBuilder &b, mlir::Value x, llvm::ArrayRef<int64_t> dims,
                                  double eps);
/// The last `count` dims of `value`.
llvm::SmallVector<int64_t> trailingDims(mlir::Value value, int64_t count);

} // namespace weft

#endif
