// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the elements of logical tensors lie, for the graph ops that reach the emitters whole.
#ifndef WEFT_COMPILER_KERNELS_EMISSION_STOREDINDEX_H
#define WEFT_COMPILER_KERNELS_EMISSION_STOREDINDEX_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/RegisterTile.h"

namespace weft {

/// The index in memory of the element `index` of a tensor of logical type `type`.
Index physicalIndex(mlir::RankedTensorType type, llvm::ArrayRef<mlir::AffineExpr> index,
                    const IndexSpace &space);

/// The stored tensor behind `tensor`, an operand of a graph op, and the index in it of the
/// element `index`.
std::pair<mlir::Value, Index> storedAt(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> index,
                                       const IndexSpace &space);

/// The memory behind `tensor`, an operand of a graph op, and the position in it of the element
/// `index`, in dims of the point's space; nothing where it does not lie in memory.
std::optional<TileOperand> storedOperand(ElementEmitter &point, mlir::Value tensor,
                                         llvm::ArrayRef<mlir::AffineExpr> index);

/// The stored tensor that `result` of a graph op becomes, or itself.
mlir::Value storedResult(mlir::Value result);

} // namespace weft

#endif
