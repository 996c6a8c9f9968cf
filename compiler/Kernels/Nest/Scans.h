// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scans inside a nest: each row is computed once, in order, into scratch.
#ifndef WEFT_COMPILER_KERNELS_NEST_SCANS_H
#define WEFT_COMPILER_KERNELS_NEST_SCANS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// The accumulator type of a scan: float64 for float32, as PyTorch's, since one long chain of
/// float32 additions loses too much.
mlir::Type accumulatorOf(CumulativeOp op);

/// `carried` combined with `next`.
mlir::Value combineRunning(mlir::OpBuilder &builder, mlir::Location loc, CumulativeOp op,
                           mlir::Value carried, mlir::Value next);

/// Computes the row of `scan` at the emitter's point into `line`, a scratch buffer with one element
/// per index along the scanned dim.
void emitScan(ElementEmitter &point, const ScanDemand &scan, const Buffer &line);

} // namespace weft

#endif
