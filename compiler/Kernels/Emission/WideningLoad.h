// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads for contractions: half precision is widened to the accumulators' type on the way
// into registers.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_WIDENINGLOAD_H
#define WEFT_COMPILER_KERNELS_EMISSION_WIDENINGLOAD_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace weft {

/// The first `count` of `width` lanes; null where these are all.
mlir::Value maskOfFirst(mlir::OpBuilder &builder, mlir::Location loc, int64_t count, int64_t width);

/// One vector of `type` from flat `memory`, whose floats are no wider than the type's; zero
/// where `mask`, unless null, is not set.
mlir::Value loadVector(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type,
                       mlir::Value memory, mlir::Value address, mlir::Value mask);

/// One element of `memory` in every lane of `type`.
mlir::Value loadBroadcast(mlir::OpBuilder &builder, mlir::Location loc, mlir::VectorType type,
                          mlir::Value memory, mlir::Value address);

} // namespace weft

#endif
