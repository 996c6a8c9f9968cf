// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocked summation, recursively: the rounding error of a sum grows with the length of its
// dependency chain of additions.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_BLOCKEDSUMMATION_H
#define WEFT_COMPILER_KERNELS_EMISSION_BLOCKEDSUMMATION_H

#include "mlir/IR/Builders.h"

namespace weft {

/// Most additions to one accumulator, if `block` below is at most that. The order depends on the
/// shape alone.
constexpr int64_t longestChain = 128;

/// Adds the terms of `count` values of a loop variable, starting at `base`, to `sums`.
using SumTerms = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::Value base, int64_t count, llvm::ArrayRef<mlir::Value> sums)>;

/// `sums` (floats, or vectors of them) plus the terms of all `extent` values of a loop variable;
/// `terms` adds `block` of them at a time to an accumulator.
llvm::SmallVector<mlir::Value> emitSumsInBlocks(mlir::OpBuilder &builder, mlir::Location loc,
                                                int64_t extent, int64_t block,
                                                llvm::ArrayRef<mlir::Value> sums, SumTerms terms);

} // namespace weft

#endif
