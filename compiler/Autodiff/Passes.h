// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes that turn the program of a graph into programs for training.
#ifndef WEFT_COMPILER_AUTODIFF_PASSES_H
#define WEFT_COMPILER_AUTODIFF_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

/// Which part of a differentiated program weft-partition keeps.
enum class TrainingHalf { Both, Forward, Backward };

#define GEN_PASS_DECL
#include "compiler/Autodiff/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Autodiff/Passes.h.inc"

} // namespace weft

#endif
