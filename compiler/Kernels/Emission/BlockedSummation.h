// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Long sums in blocks, blocks of blocks, and so on: the error of a sum grows with the additions
// one behind the other.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_BLOCKEDSUMMATION_H
#define WEFT_COMPILER_KERNELS_EMISSION_BLOCKEDSUMMATION_H

#include "mlir/IR/Builders.h"

namespace weft {

/// Most additions to one accumulator, where `block` below is not less. The order is fixed by the
/// shape alone.
constexpr int64_t longestChain = 128;

/// Adds the terms of `count` values of a loop variable, from `base` on, to `sums`.
using SumTerms = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::Value base, int64_t count, llvm::ArrayRef<mlir::Value> sums)>;

/// `sums` (floats, or vectors of them) plus the terms of all `extent` values of a loop variable,
/// of which `terms` adds `block` at a time to new sums.
llvm::SmallVector<mlir::Value> emitSumsInBlocks(mlir::OpBuilder &builder, mlir::Location loc,
                                                int64_t extent, int64_t block,
                                                llvm::ArrayRef<mlir::Value> sums, SumTerms terms);

} // namespace weft

#endif
