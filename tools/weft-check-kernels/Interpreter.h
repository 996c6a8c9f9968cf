// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference: runs functions of the stages `linalg` and `scheduled` element by element, as their
// ops are defined. Schedules are not looked at, and no code is generated.
#ifndef WEFT_TOOLS_CHECK_KERNELS_INTERPRETER_H
#define WEFT_TOOLS_CHECK_KERNELS_INTERPRETER_H

#include "Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace weft::check {

using Tensors = llvm::SmallVector<TensorRef>;
/// What the values of a function are; scalars are tensors of rank 0.
using Values = llvm::DenseMap<mlir::Value, TensorRef>;

/// The results of `function`. Fails after a diagnostic at an op that the reference does not know,
/// at a failed assert, and at a fallback to PyTorch.
mlir::FailureOr<Tensors> interpret(mlir::func::FuncOp function,
                                   llvm::ArrayRef<TensorRef> arguments);

/// The results of an op of linalg on tensors.
mlir::FailureOr<Tensors> runLinalg(mlir::linalg::LinalgOp op, const Values &values);

/// The results of an op of weft that emitters read whole; nothing if it is none of these.
std::optional<Tensors> runWhole(mlir::Operation *op, llvm::ArrayRef<TensorRef> operands);

} // namespace weft::check

#endif
