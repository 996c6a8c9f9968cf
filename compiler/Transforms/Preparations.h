// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What of a function is worth computing once, ahead of many runs of it: of a program ahead of all
// calls, of a step ahead of a loop.
#ifndef WEFT_COMPILER_TRANSFORMS_PREPARATIONS_H
#define WEFT_COMPILER_TRANSFORMS_PREPARATIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// Packing and arithmetic that depends on weights and buffers alone and is used by the rest of the
/// function, in block order. Excludes returned values, which belong to the caller and would be
/// shared, except packed ones, which cannot be results themselves.
llvm::SmallVector<mlir::Value> findPreparations(mlir::func::FuncOp function);

/// All producers of `prepared`, in block order.
llvm::SmallVector<mlir::Operation *> collectChains(mlir::func::FuncOp function,
                                                   llvm::ArrayRef<mlir::Value> prepared);

} // namespace weft

#endif
