// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Means as programs compute them, and sums that are zero because a mean was taken away.
#ifndef WEFT_COMPILER_GRAPH_MEANS_H
#define WEFT_COMPILER_GRAPH_MEANS_H

#include "mlir/IR/Value.h"

namespace weft {

/// What `value` is but for its type and shape: its elements in their order.
mlir::Value withoutViews(mlir::Value value);

/// `value` of value / count or value * (1 / count), where `quotient` is that but for views, or
/// nothing.
mlir::Value dividedBy(mlir::Value quotient, double count);

/// Whether the sum of `value` over `dims` is zero but for rounding, as its producers show: it is
/// a - mean(a) over some of the dims, perhaps times what is constant over them, or a sum of such.
/// So is the gradient of what batch and instance norms normalize by its own statistics.
bool sumsToZero(mlir::Value value, llvm::ArrayRef<int64_t> dims);

} // namespace weft

#endif
