// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The module that is checked: its entry, its schedules and what they are.
#ifndef WEFT_TOOLS_CHECK_KERNELS_SUBJECT_H
#define WEFT_TOOLS_CHECK_KERNELS_SUBJECT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace weft::check {

/// Whether functions of the module are kernels: it is at the stage `linalg` or `scheduled`.
bool hasKernels(mlir::ModuleOp module);

/// A module without a function `main` gets one that calls each function with a body, whose
/// arguments are named "function.number". Fails after a diagnostic if there is no such function.
llvm::LogicalResult addEntry(mlir::ModuleOp module);

/// For each result of `main` the function that it comes from and its number there.
llvm::SmallVector<std::string> resultNames(mlir::ModuleOp module);

/// Sets fields of schedules: "kernel.field=value" sets a number, a list of numbers as "[1,2]" or a
/// name in each part of the kernel's schedule. Fails after a diagnostic.
llvm::LogicalResult setFields(mlir::ModuleOp module, llvm::ArrayRef<std::string> settings);

/// A line for each kernel: its name and its emitter.
void printEmitters(mlir::ModuleOp module, llvm::raw_ostream &stream);

} // namespace weft::check

#endif
