// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The outer product in registers that every contraction is made of.
#ifndef WEFT_COMPILER_KERNELS_REGISTERTILE_H
#define WEFT_COMPILER_KERNELS_REGISTERTILE_H

#include "compiler/Kernels/PointEmitter.h"

namespace weft {

/// Flat memory and a position in it, linear in the loop variables.
struct TileOperand {
  mlir::Value memory;
  mlir::AffineExpr position;
};

/// One step of the reduction at the emitter's point: accumulators[i][j] += scalar i * vector j.
/// Scalar i lies `rowStride` elements after scalar i - 1; vector j holds the emitter's lanes.
/// Where the position of `scalars` runs along the lanes, each lane has scalars of its own.
llvm::SmallVector<mlir::Value> emitTileStep(PointEmitter &point, const TileOperand &scalars,
                                            int64_t rowStride, const TileOperand &vectors,
                                            int64_t rows, llvm::ArrayRef<mlir::Value> accumulators);

} // namespace weft

#endif
