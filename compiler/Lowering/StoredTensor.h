// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of the linalg stage with the logical tensors that they hold.
#ifndef WEFT_COMPILER_LOWERING_STOREDTENSOR_H
#define WEFT_COMPILER_LOWERING_STOREDTENSOR_H

#include "compiler/Graph/Graph.h"
#include "mlir/IR/Builders.h"
#include <optional>

namespace weft {

/// A physical dim: a whole logical dim, or the blocks or the lanes of the tiled one.
struct PhysicalDim {
  enum Part { Whole, Block, Lane };
  int64_t dim;
  Part part;
  bool operator==(const PhysicalDim &) const = default;
};

/// A layout as a plain value: LayoutAttr with row-major made explicit.
struct Layout {
  llvm::SmallVector<int64_t> order;
  int64_t tileDim = -1;
  int64_t tileSize = 0;

  static Layout rowMajor(int64_t rank);
  static Layout of(mlir::RankedTensorType type);

  bool hasTile() const { return tileDim >= 0; }
  bool operator==(const Layout &) const = default;

  Layout withoutTile() const { return {order, -1, 0}; }
  Layout withTile(int64_t dim, int64_t size) const { return {order, dim, size}; }
  /// The layout of the same memory read as a tensor whose dim i is this one's dim perm[i].
  Layout permuted(llvm::ArrayRef<int64_t> perm) const;
  /// The physical dims, outermost first.
  llvm::SmallVector<PhysicalDim> dims() const;
  /// The position of `dim` in memory, which must exist.
  int64_t position(PhysicalDim dim) const;
  llvm::SmallVector<int64_t> physicalShape(llvm::ArrayRef<int64_t> shape) const;
};

/// A physical value, the logical shape of the tensor in it, and its layout.
struct StoredTensor {
  mlir::Value value;
  llvm::SmallVector<int64_t> shape;
  Layout layout;

  StoredTensor(mlir::Value value, llvm::ArrayRef<int64_t> shape, Layout layout)
      : value(value), shape(shape), layout(std::move(layout)) {}
  StoredTensor(mlir::Value value, mlir::RankedTensorType logical)
      : StoredTensor(value, logical.getShape(), Layout::of(logical)) {}
};

/// The type of `logical` in memory: physical shape; bool and u8 as i8.
mlir::RankedTensorType storageType(mlir::RankedTensorType logical);

/// `value` with its dims permuted: result dim i is dim perm[i]. A reshape if no element moves.
mlir::Value transposed(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                       llvm::ArrayRef<int64_t> perm);

/// `value` reshaped by at most one collapse_shape and one expand_shape.
mlir::Value reshaped(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                     llvm::ArrayRef<int64_t> shape);

/// `value` with dim `dim` truncated, or padded with zeros, to `size`.
mlir::Value resized(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t dim,
                    int64_t size);

/// The value of `tensor` in `layout`.
mlir::Value relayout(mlir::OpBuilder &builder, mlir::Location loc, const StoredTensor &tensor,
                     const Layout &layout);

/// `tensor` without its tile.
StoredTensor untiled(mlir::OpBuilder &builder, mlir::Location loc, const StoredTensor &tensor);

/// `tensor` reshaped in logical row-major order, in the layout that moves the fewest elements.
StoredTensor reshapedLogically(mlir::OpBuilder &builder, mlir::Location loc,
                               const StoredTensor &tensor, llvm::ArrayRef<int64_t> shape);

/// The element of a splat constant, or null.
mlir::TypedAttr splatOf(mlir::Value value);

} // namespace weft

#endif
