// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loop over steps of several, whose last may be shorter.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_STEPPEDLOOP_H
#define WEFT_COMPILER_KERNELS_EMISSION_STEPPEDLOOP_H

#include "mlir/IR/Builders.h"

namespace weft {

/// Values that a loop carries.
using Carried = llvm::ArrayRef<mlir::Value>;

/// Loop over [0, count), `step` at a time: the body gets the first and how many. What a whole
/// of `total` leaves over comes last, where the count ends with it.
llvm::SmallVector<mlir::Value>
emitSteps(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value count, int64_t total,
          int64_t step, Carried carried,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, int64_t, Carried)> body);

} // namespace weft

#endif
