// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules that come as text.
#ifndef WEFT_COMPILER_DRIVER_MODULETEXT_H
#define WEFT_COMPILER_DRIVER_MODULETEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft {

/// The verified module of MLIR's text. Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(llvm::StringRef text, mlir::MLIRContext &context,
                                              llvm::StringRef name);

/// The module of `source`, which is a JSON graph or MLIR's text. Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> readModule(llvm::StringRef source, mlir::MLIRContext &context);

/// A module that was written by hand has no entry: its function `main` becomes one, with names
/// and kinds for the arguments that have none. Fails after a diagnostic where there is none.
llvm::LogicalResult prepareEntry(mlir::ModuleOp module);

} // namespace weft

#endif
