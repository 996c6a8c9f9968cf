// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The counter-based generator of random bits, in scalar operations.
#ifndef WEFT_LOWERING_PHILOX_H
#define WEFT_LOWERING_PHILOX_H

#include "mlir/IR/Builders.h"

namespace weft {

/// The first word of Philox2x32-10 of the counter (low, high) under a key, all of them i32.
mlir::Value emitPhilox(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value low,
                       mlir::Value high, mlir::Value key);

} // namespace weft

#endif // WEFT_LOWERING_PHILOX_H
