// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes over the graph dialect.
#ifndef WEFT_COMPILER_TRANSFORMS_PASSES_H
#define WEFT_COMPILER_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#include "compiler/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/Transforms/Passes.h.inc"

} // namespace weft

#endif
