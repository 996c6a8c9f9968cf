// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contractions read their operands through views, if these leave a contiguous dim.
#ifndef WEFT_COMPILER_TRANSFORMS_CONTRACTIONVIEWS_H
#define WEFT_COMPILER_TRANSFORMS_CONTRACTIONVIEWS_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// The operands of `dot` that have to be materialized, since through their views neither register
/// tiles nor dot products find contiguous vectors: of one operand along the innermost dim of the
/// result, or of both along one contracted dim. For a reshape, its source.
llvm::SmallVector<mlir::Value> operandsToStore(DotGeneralOp dot);

} // namespace weft

#endif
