// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What attention does to its scores before the softmax.
#ifndef WEFT_COMPILER_KERNELS_ATTENTIONMASK_H
#define WEFT_COMPILER_KERNELS_ATTENTIONMASK_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/PointEmitter.h"

namespace weft {

/// Scale one key's `scores`, one vector per lane group of queries, and hide what the mask
/// and causality of `op` hide. `index` is the scores' (batch..., query, key), the queries
/// in the lanes of `point`.
llvm::SmallVector<mlir::Value> maskScores(AttentionOp op, PointEmitter &point,
                                          llvm::ArrayRef<mlir::AffineExpr> index,
                                          llvm::ArrayRef<mlir::Value> scores);

} // namespace weft

#endif
