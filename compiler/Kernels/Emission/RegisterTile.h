// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The microkernel step of every contraction: an outer product in registers.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_REGISTERTILE_H
#define WEFT_COMPILER_KERNELS_EMISSION_REGISTERTILE_H

#include "compiler/Kernels/Emission/ElementEmitter.h"

namespace weft {

/// Flat memory and a position in it, linear in the loop variables.
struct TileOperand {
  mlir::Value memory;
  mlir::AffineExpr position;
  /// For scalars: consecutive lanes that share one (0: all lanes do), and the stride between the
  /// scalars of a vector. One load covers them.
  int64_t lanesPerScalar = 0, scalarGap = 0;
};

/// One reduction step at the emitter's point: accumulators[i][j] += scalar i * vector j.
/// `rowStride`: elements between scalars i - 1 and i; vector j holds lane group j.
llvm::SmallVector<mlir::Value> emitTileStep(ElementEmitter &point, const TileOperand &scalars,
                                            int64_t rowStride, const TileOperand &vectors,
                                            int64_t rows, llvm::ArrayRef<mlir::Value> accumulators);

} // namespace weft

#endif
