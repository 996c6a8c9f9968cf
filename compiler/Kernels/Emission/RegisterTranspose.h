// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef WEFT_COMPILER_KERNELS_EMISSION_REGISTERTRANSPOSE_H
#define WEFT_COMPILER_KERNELS_EMISSION_REGISTERTRANSPOSE_H

#include "compiler/Kernels/Emission/ElementEmitter.h"

namespace weft {

/// Transposes n vectors of n lanes, n a power of two, in log2(n) rounds of two-operand shuffles
/// that exchange ever smaller blocks. Vectors of more lanes are transposed as n parts of
/// consecutive lanes.
llvm::SmallVector<mlir::Value> transposeVectors(mlir::OpBuilder &builder, mlir::Location loc,
                                                llvm::ArrayRef<mlir::Value> rows);

/// Transposes a square of `width` lanes in registers. `value` returns a vector along `loadDim`, for
/// each of `columns` values of `storeDim` from `base` on; `store` gets a vector along `storeDim`,
/// for each of `rows` values of `loadDim` from the point's on. The point is set for each call; it
/// has no lanes afterwards.
void emitSquare(ElementEmitter &point, unsigned loadDim, unsigned storeDim, mlir::Value base,
                int64_t columns, int64_t rows, int64_t width,
                llvm::function_ref<mlir::Value()> value,
                llvm::function_ref<void(const Emitted &)> store);

} // namespace weft

#endif
