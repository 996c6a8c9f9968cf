// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The preferred layouts of convolutions, by shapes and vector width.
#ifndef WEFT_COMPILER_TRANSFORMS_CONVLAYOUTS_H
#define WEFT_COMPILER_TRANSFORMS_CONVLAYOUTS_H

#include "compiler/Graph/Graph.h"

namespace weft {

struct ConvLayouts {
  LayoutAttr images; ///< of input and result
  LayoutAttr weight;
};

/// Channels last, with vectors along output channels: the weight (o, c, k...) is stored as (o /
/// block, k..., c, block), or as (k..., c, o) if blocks would cross groups. Nothing: row-major,
/// with vectors along the last spatial dim, better for few channels per group.
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
