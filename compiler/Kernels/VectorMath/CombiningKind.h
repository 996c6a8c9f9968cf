// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Maps the graph's reductions to those of the vector dialect.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_COMBININGKIND_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_COMBININGKIND_H

#include "compiler/Graph/Graph.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace weft {

/// How `kind` combines stored elements of type `element`; integers are signed.
mlir::vector::CombiningKind combiningKindOf(ReduceKind kind, mlir::Type element);

} // namespace weft

#endif
