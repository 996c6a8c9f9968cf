// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single bf16 numbers are read as integers. Of a bfloat whose sign alone is asked for, by way of a
// bitcast, LLVM 22 takes another bit (FGETSIGN, which leaves out half but not bfloat).
#ifndef WEFT_COMPILER_DRIVER_INTEGERBFLOAT16_H
#define WEFT_COMPILER_DRIVER_INTEGERBFLOAT16_H

#include "llvm/IR/PassManager.h"

namespace weft {

struct IntegerBFloat16Pass : llvm::PassInfoMixin<IntegerBFloat16Pass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace weft

#endif
