// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_COMPILER_KERNELS_EMISSION_REGISTERTRANSPOSE_H
#define WEFT_COMPILER_KERNELS_EMISSION_REGISTERTRANSPOSE_H

#include "compiler/Kernels/Emission/ElementEmitter.h"

namespace weft {

/// The columns of a square of n vectors of n lanes, n a power of two, by log2(n) rounds of
/// two-operand shuffles that exchange ever smaller blocks; of vectors of more lanes, the columns of
/// n parts.
llvm::SmallVector<mlir::Value> transposeVectors(mlir::OpBuilder &builder, mlir::Location loc,
                                                llvm::ArrayRef<mlir::Value> rows);

/// Through registers, a square of `width` lanes: `columns` vectors that `value` gives along
/// `loadDim`, at as many values of `storeDim` from `base` on, are vectors along `storeDim` when
/// `store` gets them, `rows` of them, at as many values of `loadDim` from the point's on. The point
/// is at each; it has no lanes afterwards.
void emitSquare(ElementEmitter &point, unsigned loadDim, unsigned storeDim, mlir::Value base,
                int64_t columns, int64_t rows, int64_t width,
                llvm::function_ref<mlir::Value()> value,
                llvm::function_ref<void(const Emitted &)> store);

} // namespace weft

#endif
