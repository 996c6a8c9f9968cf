// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ops of arith and math on numbers with errors.
#ifndef WEFT_TOOLS_CHECK_KERNELS_SCALAROPS_H
#define WEFT_TOOLS_CHECK_KERNELS_SCALAROPS_H

#include "Number.h"
#include "mlir/IR/Operation.h"

namespace weft::check {

/// What `op` computes, or null for an op that is none of arith's or math's on scalars.
Computation scalarOperation(mlir::Operation *op);

/// The same for reductions of one kind: the operation on a total and an element, by the name of
/// weft's kind ("sum", "prod", "max", "min", "any", "all"), of signless elements of `type`.
Computation combination(llvm::StringRef kind, mlir::Type type);

/// Basic arithmetic, rounded to the float type.
Computation plus(mlir::Type type);
Computation minus(mlir::Type type);
Computation times(mlir::Type type);
Computation over(mlir::Type type);
Computation exponential(mlir::Type type);

} // namespace weft::check

#endif
