// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The layout of images that convolutions read and write.
#ifndef WEFT_COMPILER_GRAPH_IMAGELAYOUT_H
#define WEFT_COMPILER_GRAPH_IMAGELAYOUT_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// (n, s..., c) for images (n, c, s...).
LayoutAttr channelsLast(mlir::RankedTensorType type);

} // namespace weft

#endif
