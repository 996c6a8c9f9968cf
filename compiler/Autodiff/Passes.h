// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes that make a program for training of a graph.
#ifndef WEFT_COMPILER_AUTODIFF_PASSES_H
#define WEFT_COMPILER_AUTODIFF_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#include "compiler/Autodiff/Passes.h.inc"

/// What a differentiated function says of itself: how many of its arguments and results are those
/// of the program, of which arguments there are gradients, and which are read by the derivatives of
/// ops that were decomposed.
namespace joint {
inline constexpr llvm::StringLiteral kInputs = "weft.joint_inputs";
inline constexpr llvm::StringLiteral kResults = "weft.joint_results";
inline constexpr llvm::StringLiteral kWrt = "weft.joint_wrt";
inline constexpr llvm::StringLiteral kRead = "weft.joint_read";
} // namespace joint

#define GEN_PASS_REGISTRATION
#include "compiler/Autodiff/Passes.h.inc"

} // namespace weft

#endif
