// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernels read weights that no cache has kept since the call before.
#ifndef WEFT_COMPILER_LOWERING_ENTRIES_COLDWEIGHTS_H
#define WEFT_COMPILER_LOWERING_ENTRIES_COLDWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace weft {

/// The kernels that are called by entries whose contractions read more than `cacheBytes` of their
/// arguments: each call drives out what the next would find. Tables that are looked up do not
/// count, as little of them is read.
llvm::StringSet<> findKernelsOfColdWeights(mlir::ModuleOp module, int64_t cacheBytes);

} // namespace weft

#endif
