// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The one linalg.generic that every contraction becomes: result += lhs * rhs.
#ifndef WEFT_COMPILER_LOWERING_GRAPHTOLINALGCONTRACTION_H
#define WEFT_COMPILER_LOWERING_GRAPHTOLINALGCONTRACTION_H

#include "compiler/Lowering/StoredTensor.h"
#include "mlir/IR/AffineMap.h"

namespace weft {

/// Sum over `reductions` of lhs * rhs. Indices number the result's logical dims, then the
/// reductions. Blocks and lanes of a tiled dim are separate iteration dims.
class LinalgContraction {
public:
  /// One dim of an operand: an index, or stride * window + dilation * index.
  struct OperandDim {
    int64_t index;
    int64_t dilation = 1;
    int64_t window = -1;
    int64_t stride = 0;
  };
  struct Operand {
    StoredTensor tensor;
    llvm::SmallVector<OperandDim> dims;
  };

  LinalgContraction(llvm::ArrayRef<int64_t> resultShape, llvm::ArrayRef<int64_t> reductions)
      : resultShape(resultShape), reductions(reductions) {}

  /// Emits it on elements of logical type `element`; the result has layout `layout`.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc, Operand lhs, Operand rhs,
                   mlir::Type element, const Layout &layout);

private:
  void chooseTiles(const Operand &lhs, const Operand &rhs);
  StoredTensor fitted(mlir::OpBuilder &builder, mlir::Location loc, const Operand &operand) const;
  void layOutIteration();
  mlir::AffineExpr axis(mlir::Builder &builder, PhysicalDim dim) const;
  mlir::AffineMap readMap(mlir::Builder &builder, const Operand &operand) const;
  void markPadding(mlir::Builder &builder, mlir::Operation *generic) const;

  llvm::SmallVector<int64_t> resultShape, reductions;
  /// Layout of the generic's result: the requested one, or tiled like the lhs.
  Layout computed;
  /// A result dim that is tiled in rhs: its blocks and lanes are adjacent iteration dims.
  int64_t packedDim = -1;
  int64_t packSize = 0;
  /// Iteration dims: the physical dims of the result, outermost first, then the reductions.
  llvm::SmallVector<PhysicalDim> axes;
  llvm::SmallVector<int64_t> physicalShape;
};

} // namespace weft

#endif
