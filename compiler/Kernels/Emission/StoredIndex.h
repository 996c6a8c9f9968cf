// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Physical positions of logical tensor elements, for graph ops that reach the emitters
// undecomposed.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_STOREDINDEX_H
#define WEFT_COMPILER_KERNELS_EMISSION_STOREDINDEX_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/RegisterTile.h"

namespace weft {

/// The physical index of element `index` of a tensor of logical type `type`.
Index physicalIndex(mlir::RankedTensorType type, llvm::ArrayRef<mlir::AffineExpr> index,
                    const IndexSpace &space);

/// The physical tensor that `tensor`, an operand of a graph op, is cast from, and the physical
/// index of element `index`.
std::pair<mlir::Value, Index> storedAt(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index,
                                       const IndexSpace &space);

/// The memory of `tensor`, an operand of a graph op, and the position in it of element `index`, in
/// dims of the point's space; nothing if it is not in memory.
std::optional<TileOperand> storedOperand(ElementEmitter &point, mlir::Value tensor,
                                         llvm::ArrayRef<mlir::AffineExpr> index);

/// The physical tensor that `result` of a graph op is cast to, or itself.
mlir::Value storedResult(mlir::Value result);

} // namespace weft

#endif
