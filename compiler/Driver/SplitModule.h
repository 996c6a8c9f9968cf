// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One module per kernel, so that kernels can be compiled side by side.
#ifndef WEFT_COMPILER_DRIVER_SPLITMODULE_H
#define WEFT_COMPILER_DRIVER_SPLITMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft {

/// Part a module in the LLVM dialect: first what is not a kernel (entry points, the artifact
/// table), then each kernel by itself. A kernel is declared where it is called; what it uses
/// besides, such as constant tables, is copied to it with internal linkage.
llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> splitModule(mlir::ModuleOp module);

} // namespace weft

#endif
