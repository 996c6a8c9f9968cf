// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks that several ops share. Each reports through the ErrorFn of the op at hand.
#ifndef WEFT_COMPILER_GRAPH_CONSTRAINTS_H
#define WEFT_COMPILER_GRAPH_CONSTRAINTS_H

#include "compiler/Graph/Graph.h"

namespace weft {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// `name` is a dim of a tensor of `rank`.
mlir::LogicalResult checkDim(llvm::StringRef name, int64_t dim, int64_t rank, ErrorFn error);

/// Every entry of `dims` is a dim of a tensor of `rank`, and none comes twice.
mlir::LogicalResult checkDims(llvm::StringRef name, llvm::ArrayRef<int64_t> dims, int64_t rank,
                              ErrorFn error);

/// `values` has `size` entries, none below `least`.
mlir::LogicalResult checkEntries(llvm::StringRef name, llvm::ArrayRef<int64_t> values, int64_t size,
                                 int64_t least, ErrorFn error);

/// `value` has the shape `shape`.
mlir::LogicalResult checkShape(llvm::StringRef name, mlir::Value value,
                               llvm::ArrayRef<int64_t> shape, ErrorFn error);

/// `lhs` and `rhs` have one element type.
mlir::LogicalResult checkSameElement(llvm::StringRef lhsName, mlir::Value lhs,
                                     llvm::StringRef rhsName, mlir::Value rhs, ErrorFn error);

/// The elements of `value` can be added and multiplied, which bools cannot.
mlir::LogicalResult checkNumbers(llvm::StringRef name, mlir::Value value, ErrorFn error);

/// `kind` can combine elements of `type`: any and all bools, the others numbers.
mlir::LogicalResult checkReduceKind(ReduceKind kind, mlir::Type type, ErrorFn error);

} // namespace weft

#endif
