// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a layout goes through ops that only rename elements. Each function answers the
// layout of the result for which no element moves, null standing for row-major, or failure
// when there is none.
#ifndef WEFT_COMPILER_TRANSFORMS_VIEWLAYOUTS_H
#define WEFT_COMPILER_TRANSFORMS_VIEWLAYOUTS_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// Null in place of an untiled identity order.
LayoutAttr normalized(LayoutAttr layout);

/// The layout of weft.transpose of a tensor in `layout` by `perm`.
LayoutAttr transposedLayout(LayoutAttr layout, llvm::ArrayRef<int64_t> perm);

/// The layout that is left of `layout` when `dims`, not the tiled one, disappear.
mlir::FailureOr<LayoutAttr> reducedLayout(LayoutAttr layout, llvm::ArrayRef<int64_t> dims);

/// The layout of a tensor in `layout` whose dim i is dim `dims[i]` of `shape`; a new dim
/// lies directly inside the one ahead of it. Fails when the tiled dim itself is repeated.
mlir::FailureOr<LayoutAttr> broadcastLayout(mlir::RankedTensorType operand,
                                            llvm::ArrayRef<int64_t> shape,
                                            llvm::ArrayRef<int64_t> dims);

/// The layout of `operand` under another `shape`. Dims that merge must lie in order next to
/// one another; the tiled dim merges or splits only in whole tiles.
mlir::FailureOr<LayoutAttr> reshapedLayout(mlir::RankedTensorType operand,
                                           llvm::ArrayRef<int64_t> shape);

} // namespace weft

#endif
