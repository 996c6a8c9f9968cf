// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads for contractions: half precision is widened to the accumulators' type on the way
// into registers.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_WIDENINGLOAD_H
#define WEFT_COMPILER_KERNELS_EMISSION_WIDENINGLOAD_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace weft {

/// A mask of the first `count` of `width` lanes; null if these are all.
mlir::Value maskOfFirst(mlir::OpBuilder &builder, mlir::Location loc, int64_t count, int64_t width);

/// Loads a vector of `type` from flat `memory`, whose floats are no wider than the type's; lanes
/// not in `mask` (null: all are) are zero.
mlir::Value loadVector(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type,
                       mlir::Value memory, mlir::Value address, mlir::Value mask);

/// Broadcasts one element of `memory` to all lanes of `type`.
mlir::Value loadBroadcast(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type,
                          mlir::Value memory, mlir::Value address);

} // namespace weft

#endif
