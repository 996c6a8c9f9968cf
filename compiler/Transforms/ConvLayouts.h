// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layouts that convolutions want, from shapes and the width of a vector alone.
#ifndef WEFT_COMPILER_TRANSFORMS_CONVLAYOUTS_H
#define WEFT_COMPILER_TRANSFORMS_CONVLAYOUTS_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// (n, s..., c) for images (n, c, s...).
LayoutAttr channelsLast(mlir::RankedTensorType type);

struct ConvLayouts {
  LayoutAttr images; ///< of input and result
  LayoutAttr weight;
};

/// Channels last, so that vectors run along output channels: the weight (o, c, k...) lies as
/// (o / block, k..., c, block), or as (k..., c, o) where blocks do not fit groups. Nothing for
/// row-major, with vectors along the last spatial dim, which suits groups of few channels.
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
