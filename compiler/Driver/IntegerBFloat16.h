// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What only moves bf16 numbers moves their bits as integers. LLVM 22 mistakes other forms of moving
// them: of a bfloat whose sign alone is asked for, by way of a bitcast, it takes another bit
// (FGETSIGN, which leaves out half but not bfloat); with AVX-512's float16 it cannot select a
// shuffle of two loaded vectors; and from one block to another it passes a bfloat as a float, which
// AVX-512's conversion back makes zero of a denormal.
#ifndef WEFT_COMPILER_DRIVER_INTEGERBFLOAT16_H
#define WEFT_COMPILER_DRIVER_INTEGERBFLOAT16_H

#include "llvm/IR/PassManager.h"

namespace weft {

struct IntegerBFloat16Pass : llvm::PassInfoMixin<IntegerBFloat16Pass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace weft

#endif
