// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a schedule's emitter is: a row of the table in Emitters.cpp.
#ifndef WEFT_COMPILER_KERNELS_EMITTERS_H
#define WEFT_COMPILER_KERNELS_EMITTERS_H

#include "compiler/Graph/EmitterFields.h"
#include "llvm/Support/LogicalResult.h"

namespace weft {

struct KernelFunction;

struct Emitter {
  llvm::StringLiteral name;
  llvm::SmallVector<ScheduleField> fields;
  llvm::LogicalResult (*emit)(KernelFunction &kernel);
};

llvm::ArrayRef<Emitter> emitters();

/// The emitter of that name, or null.
const Emitter *findEmitter(llvm::StringRef name);

} // namespace weft

#endif
