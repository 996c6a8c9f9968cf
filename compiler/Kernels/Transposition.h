// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_COMPILER_KERNELS_TRANSPOSITION_H
#define WEFT_COMPILER_KERNELS_TRANSPOSITION_H

#include "mlir/IR/Builders.h"

namespace weft {

/// The columns of a square of n vectors of n lanes, n a power of two, by log2(n) rounds of
/// two-operand shuffles that exchange ever smaller blocks.
llvm::SmallVector<mlir::Value> transposeVectors(mlir::OpBuilder &builder, mlir::Location loc,
                                                llvm::ArrayRef<mlir::Value> rows);

} // namespace weft

#endif
