// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Entries while they are functions on tensors that call kernels.
#ifndef WEFT_COMPILER_GRAPH_ENTRYFUNCTIONS_H
#define WEFT_COMPILER_GRAPH_ENTRYFUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

/// The functions of a module that are entries.
llvm::SmallVector<mlir::func::FuncOp> entriesOf(mlir::ModuleOp module);

/// The entries of a module on tensors, and the steps of their loops.
llvm::SmallVector<mlir::func::FuncOp> entriesAndSteps(mlir::ModuleOp module);

/// The tensor that owns the memory of `tensor`, through casts and advances, in an entry on tensors.
mlir::Value ownerOf(mlir::Value tensor);

/// Bytes of a tensor or memref of static shape.
int64_t byteSize(mlir::ShapedType type);

} // namespace weft

#endif
