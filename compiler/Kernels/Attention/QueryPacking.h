// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queries of an attention in vector lanes: read where they lie, if they lie so, else from a
// copy, a row for each feature.
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_QUERYPACKING_H
#define WEFT_COMPILER_KERNELS_ATTENTION_QUERYPACKING_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/RowScratch.h"

namespace weft {

class QueryPacking : private IndexArithmetic {
public:
  QueryPacking(KernelFunction &kernel, ElementEmitter &point, AttentionOp op);

  /// `index` is that of a query, (batch..., token, feature); the loop variables `lane` and
  /// `feature` stand in it.
  llvm::LogicalResult match(llvm::ArrayRef<mlir::AffineExpr> index, mlir::AffineExpr lane,
                            mlir::AffineExpr feature);
  /// Reserve scratch for blocks of `groups` vectors, where it is needed. Blocks that are not
  /// `whole` have lanes beyond the queries in memory.
  void reserve(mlir::VectorType type, int64_t groups, bool whole);
  /// Fill the scratch, if there is any, with the queries in the point's lanes, which may be others
  /// afterwards.
  void pack();
  /// For the register tiles of a feature.
  TileOperand operand() const { return packed ? packed->at(feature, lane) : *stored; }

private:
  void packRows(mlir::Value source, llvm::ArrayRef<mlir::AffineExpr> sourceIndex);
  void packSquares(mlir::Value source, llvm::ArrayRef<mlir::AffineExpr> sourceIndex);
  bool liesAlong(mlir::AffineExpr dim) const;

  KernelFunction &kernel;
  ElementEmitter &point;
  mlir::Value queries;
  llvm::SmallVector<mlir::AffineExpr> index;
  mlir::AffineExpr lane, feature;
  std::optional<TileOperand> stored;
  std::optional<RowScratch> packed;
};

} // namespace weft

#endif
