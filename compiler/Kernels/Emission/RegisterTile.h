// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The outer product in registers that every contraction is made of.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_REGISTERTILE_H
#define WEFT_COMPILER_KERNELS_EMISSION_REGISTERTILE_H

#include "compiler/Kernels/Emission/ElementEmitter.h"

namespace weft {

/// Flat memory and a position in it, linear in the loop variables.
struct TileOperand {
  mlir::Value memory;
  mlir::AffineExpr position;
  /// Of scalars: how many neighbouring lanes share one, all if 0, and how many elements lie
  /// between those of neighbours in a vector. One load covers the scalars of a vector.
  int64_t lanesPerScalar = 0, scalarGap = 0;
};

/// One step of the reduction at the emitter's point: accumulators[i][j] += scalar i * vector j.
/// Scalar i lies `rowStride` elements after scalar i - 1; vector j holds the emitter's lanes.
llvm::SmallVector<mlir::Value> emitTileStep(ElementEmitter &point, const TileOperand &scalars,
                                            int64_t rowStride, const TileOperand &vectors,
                                            int64_t rows, llvm::ArrayRef<mlir::Value> accumulators);

} // namespace weft

#endif
