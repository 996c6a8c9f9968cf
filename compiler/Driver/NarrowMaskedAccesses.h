// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Masked loads and stores without the parts of which no lane can be set.
#ifndef WEFT_COMPILER_DRIVER_NARROWMASKEDACCESSES_H
#define WEFT_COMPILER_DRIVER_NARROWMASKEDACCESSES_H

#include "llvm/IR/PassManager.h"

namespace weft {

/// Splits masked accesses of which a whole register's lanes are known to be off.
///
/// Where LLVM 22 splits a vector into AVX2's registers, and the mask of one is a condition and
/// constants that are all false, it takes that mask for the constants of another register: the
/// load of these lanes has no mask, and reads behind the buffer's end.
struct NarrowMaskedAccessesPass : llvm::PassInfoMixin<NarrowMaskedAccessesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace weft

#endif
