// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running reductions inside a nest: each line is computed once, in order, into scratch.
#ifndef WEFT_COMPILER_KERNELS_NEST_SCANS_H
#define WEFT_COMPILER_KERNELS_NEST_SCANS_H

#include "compiler/Kernels/Emission/AccessAnalysis.h"
#include "compiler/Kernels/Emission/KernelFunction.h"

namespace weft {

/// What a running reduction is carried in. One chain of float32 additions drifts: they are carried
/// in float64, as PyTorch's are.
mlir::Type accumulatorOf(CumulativeOp op);

/// `next` behind what has been carried so far.
mlir::Value combineRunning(mlir::OpBuilder &builder, mlir::Location loc, CumulativeOp op,
                           mlir::Value carried, mlir::Value next);

/// Compute the line of `scan` through the emitter's point into `line`, a scratch buffer of
/// one element for each index along the scanned dim.
void emitScan(ElementEmitter &point, const ScanDemand &scan, const Buffer &line);

} // namespace weft

#endif
