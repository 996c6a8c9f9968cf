// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels whose weights are not in cache when a call begins.
#ifndef WEFT_COMPILER_SCHEDULING_COLDWEIGHTS_H
#define WEFT_COMPILER_SCHEDULING_COLDWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace weft {

/// The kernels called by entries whose contractions read more than `cacheBytes` of their arguments:
/// each call evicts what the next one would reuse. Lookup tables do not count, as little of them is
/// read.
llvm::StringSet<> findKernelsOfColdWeights(mlir::ModuleOp module, int64_t cacheBytes);

} // namespace weft

#endif
