// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queries of an attention in vector lanes: loaded from the operand if it is contiguous along
// the queries, else from a packed copy [feature][query].
#ifndef WEFT_COMPILER_KERNELS_ATTENTION_QUERYPACKING_H
#define WEFT_COMPILER_KERNELS_ATTENTION_QUERYPACKING_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/RowScratch.h"

namespace weft {

class QueryPacking : private IndexArithmetic {
public:
  QueryPacking(KernelFunction &kernel, ElementEmitter &point, AttentionOp op);

  /// `index`: that of a query, (batch..., token, feature), with loop variables `lane` and
  /// `feature`.
  llvm::LogicalResult match(llvm::ArrayRef<mlir::AffineExpr> index, mlir::AffineExpr lane,
                            mlir::AffineExpr feature);
  /// Reserves scratch for blocks of `groups` vectors, if packing is needed. Blocks that are not
  /// `whole` have lanes past the last query.
  void reserve(mlir::VectorType type, int64_t groups, bool whole);
  /// Packs the queries in the point's lanes, if needed; may change the point's lanes.
  void pack();
  /// The operand of the register tiles.
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
