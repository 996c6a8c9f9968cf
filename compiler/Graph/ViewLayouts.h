// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The algebra of layouts by which ops keep the layout of an operand. Each function returns the
// result's layout for which no element moves (null: row-major), or failure if there is none.
#ifndef WEFT_COMPILER_GRAPH_VIEWLAYOUTS_H
#define WEFT_COMPILER_GRAPH_VIEWLAYOUTS_H

#include "compiler/Graph/Graph.h"

namespace weft {

/// Null in place of an untiled identity order.
LayoutAttr normalized(LayoutAttr layout);

/// The layout of weft.transpose of a tensor in `layout` by `perm`.
LayoutAttr transposedLayout(LayoutAttr layout, llvm::ArrayRef<int64_t> perm);

/// `layout` without `dims`, none of which may be tiled.
mlir::FailureOr<LayoutAttr> reducedLayout(LayoutAttr layout, llvm::ArrayRef<int64_t> dims);

/// The layout of a tensor in `layout` whose dim i is dim `dims[i]` of `shape`; a new dim is placed
/// right after its predecessor. Fails if the tiled dim itself is broadcast.
mlir::FailureOr<LayoutAttr> broadcastLayout(mlir::RankedTensorType operand,
                                            llvm::ArrayRef<int64_t> shape,
                                            llvm::ArrayRef<int64_t> dims);

/// The layout of `operand` reshaped to `shape`. Merged dims must be adjacent and in order; the
/// tiled dim merges or splits only in whole tiles.
mlir::FailureOr<LayoutAttr> reshapedLayout(mlir::RankedTensorType operand,
                                           llvm::ArrayRef<int64_t> shape);

/// The layout of `type`, unless it is tiled along a dim for which `worksAlong` holds.
mlir::FailureOr<LayoutAttr> unlessTiledAlong(mlir::RankedTensorType type,
                                             llvm::function_ref<bool(int64_t)> worksAlong);

/// The layout of `type`, unless it is tiled.
mlir::FailureOr<LayoutAttr> unlessTiled(mlir::RankedTensorType type);

} // namespace weft

#endif
