// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layouts that contractions want, from shapes and the width of a vector alone.
#ifndef WEFT_COMPILER_TRANSFORMS_LAYOUTCHOICES_H
#define WEFT_COMPILER_TRANSFORMS_LAYOUTCHOICES_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// Feature-major in blocks of tokens for a (..., tokens, features) tensor, null when its
/// tokens do not fill a vector of `lanes`.
LayoutAttr chooseTokenLayout(mlir::RankedTensorType type, int64_t lanes);

/// Of a contraction of (..., tokens, features) in such blocks, against one without padding.
double workInTokenBlocks(mlir::RankedTensorType type, int64_t lanes);

/// Whether a linear layer of (..., tokens, features) row-major tokens, alone in its program, is
/// better computed by dot products along the features: few tokens leave much of a block to
/// padding, and nothing but this layer would pay for the relayouts.
bool dotProductsCostLess(mlir::RankedTensorType type, int64_t lanes);

/// Blocks of columns for a matrix that is summed along the other dim: vectors run along a
/// block, as (columns / block, rows, block) in memory.
LayoutAttr choosePackedLayout(mlir::RankedTensorType matrix, int64_t columnDim, int64_t lanes);

/// Whether `type` is a (..., tokens, features) tensor in blocks of tokens, in any order.
bool isInTokenBlocks(mlir::RankedTensorType type);

/// (n, s..., c) for images (n, c, s...).
LayoutAttr channelsLast(mlir::RankedTensorType type);

struct ConvLayouts {
  LayoutAttr images; ///< of input and result
  LayoutAttr weight;
};

/// Channels last, so that vectors run along output channels: the weight (o, c, k...) lies as
/// (o / block, k..., c, block), or as (k..., c, o) in groups. Nothing for row-major, with
/// vectors along the last spatial dim, which suits groups of few channels.
std::optional<ConvLayouts> chooseConvLayouts(ConvOp conv, int64_t lanes);

struct WinogradLayouts {
  LayoutAttr images; ///< of input and result
  LayoutAttr transformed, weight;
};

/// Channels last, and weights in blocks of output channels: (o / block, 16, c, block) and
/// (o / block, 3, 3, c, block).
WinogradLayouts chooseWinogradLayouts(WinogradConvOp conv, int64_t lanes);

} // namespace weft

#endif
