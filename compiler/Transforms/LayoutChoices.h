// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layouts that contractions want, from shapes and the width of a vector alone.
#ifndef WEFT_COMPILER_TRANSFORMS_LAYOUTCHOICES_H
#define WEFT_COMPILER_TRANSFORMS_LAYOUTCHOICES_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// Feature-major in blocks of tokens for a (..., tokens, features) tensor, null when its
/// tokens do not fill a vector of `lanes`.
LayoutAttr chooseTokenLayout(mlir::RankedTensorType type, int64_t lanes);

/// Whether `type` is a (..., tokens, features) tensor in blocks of tokens, in any order.
bool isInTokenBlocks(mlir::RankedTensorType type);

/// (n, h, w, c) for an image (n, c, h, w).
LayoutAttr channelsLast(mlir::MLIRContext *context);

/// (o / block, h, w, c, block) for a convolution weight (o, c, h, w).
LayoutAttr chooseConvWeightLayout(mlir::RankedTensorType weight, int64_t lanes);

} // namespace weft

#endif
