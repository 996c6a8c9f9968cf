// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which values of a function are worth computing once, before it runs many times: those of a
// program before all calls, those of a loop's step before the loop.
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
