// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loop with a step and a peeled remainder.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_STEPPEDLOOP_H
#define WEFT_COMPILER_KERNELS_EMISSION_STEPPEDLOOP_H

#include "mlir/IR/Builders.h"

namespace weft {

/// Values that a loop carries.
using Carried = llvm::ArrayRef<mlir::Value>;

/// Loop over [0, count) in steps of `step`: the body gets the first index and the step size. If
/// `count` is not constant, it has to leave the remainder total % step, or none.
llvm::SmallVector<mlir::Value>
emitSteps(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value count, int64_t total,
          int64_t step, Carried carried,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, int64_t, Carried)> body);

} // namespace weft

#endif
