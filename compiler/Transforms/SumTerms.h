// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of more than two terms, as trees of additions.
#ifndef WEFT_COMPILER_TRANSFORMS_SUMTERMS_H
#define WEFT_COMPILER_TRANSFORMS_SUMTERMS_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// Whether nothing but another addition of its block reads the sum.
bool isPartOfSum(AddOp sum);

/// The terms of a sum, whose partial sums nothing else reads.
llvm::SmallVector<mlir::Value> termsOf(AddOp sum);

} // namespace weft

#endif
