// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Object files in memory become one shared object, without a process of its own.
#ifndef WEFT_COMPILER_DRIVER_LINK_H
#define WEFT_COMPILER_DRIVER_LINK_H

#include "compiler/Driver/CodeGen.h"
#include "llvm/Support/Error.h"

namespace weft {

/// Link `objects` into the shared object `outputPath`, which appears complete or not at all.
/// Symbols they leave undefined (libm, memcpy) are resolved in the process that loads it.
/// A file that cannot be written is an llvm::FileError.
/// May be called from several threads; lld runs once at a time.
llvm::Error linkSharedObject(llvm::ArrayRef<ObjectCode> objects, llvm::StringRef outputPath);

} // namespace weft

#endif
