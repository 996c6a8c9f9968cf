// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values that are compared with elements of themselves, and so have to be the same wherever they
// are read.
#ifndef WEFT_COMPILER_GRAPH_COMPAREDVALUES_H
#define WEFT_COMPILER_GRAPH_COMPAREDVALUES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace weft {

/// Where the same op may be computed again.
enum class Again {
  Loops,    ///< of one program, in which contractions and attention are computed once
  Programs, ///< of a forward and its backward, which share what is saved
};

/// The ops in `block` whose rounding depends on where they are computed (sums, elementary
/// functions, sums of products that may round once) and whose results meet elements of themselves
/// from another index: both sides of a comparison have them, as p == max(p), or their difference
/// is compared with a number, or, among loops, they leave the block twice, as p and max(p). And
/// the ops that keep these elements, as in max(p, 0).
llvm::DenseSet<mlir::Operation *> comparedValues(mlir::Block &block, Again again);

/// Whether `op` computes each element from those at the same index, in the order of its operands.
bool staysInPlace(mlir::Operation *op);

} // namespace weft

#endif
