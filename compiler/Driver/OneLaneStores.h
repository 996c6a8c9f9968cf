// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Masked stores of one known lane, written as the scalar stores that they are.
#ifndef WEFT_COMPILER_DRIVER_ONELANESTORES_H
#define WEFT_COMPILER_DRIVER_ONELANESTORES_H

#include "llvm/IR/PassManager.h"

namespace weft {

/// Replaces each masked store whose constant mask has one lane by a scalar store.
///
/// LLVM 22 does so as well, but after it has merged a truncation with the masked store: the
/// scalar then has the wide type, and its store writes up to seven bytes past the element
/// (https://github.com/llvm/llvm-project/issues/179489).
struct OneLaneStoresPass : llvm::PassInfoMixin<OneLaneStoresPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace weft

#endif
