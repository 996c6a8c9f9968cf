// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contractions read their operands through views, if the views leave something contiguous.
#ifndef WEFT_COMPILER_TRANSFORMS_CONTRACTIONVIEWS_H
#define WEFT_COMPILER_TRANSFORMS_CONTRACTIONVIEWS_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// The operands of `dot` that are to be stored as it sees them, since where they lie neither
/// register tiles nor dot products find vectors: one operand along the innermost dim of the
/// result, or both along one contracted dim. Of what only has another shape, what lies behind.
llvm::SmallVector<mlir::Value> operandsToStore(DotGeneralOp dot);

} // namespace weft

#endif
