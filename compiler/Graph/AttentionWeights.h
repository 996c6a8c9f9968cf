// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The weights of attention in primitive ops: what its decomposition and its derivative share.
#ifndef WEFT_COMPILER_GRAPH_ATTENTIONWEIGHTS_H
#define WEFT_COMPILER_GRAPH_ATTENTIONWEIGHTS_H

#include "compiler/Graph/ComputeBuilder.h"

namespace weft {

/// softmax(scale * query key^T + mask) of `op`, in the type computed in: (b..., tq, tk).
mlir::Value attentionWeights(AttentionOp op, ComputeBuilder &b, mlir::OpBuilder &builder);

} // namespace weft

#endif
