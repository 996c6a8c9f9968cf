// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contractions whose operands are both contiguous along the reduction, as rows by rows are.
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_DOTOPERANDS_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_DOTOPERANDS_H

#include "compiler/Kernels/Contraction/ContractionShape.h"
#include "compiler/Kernels/Emission/ElementEmitter.h"
#include "compiler/Kernels/Emission/Prefetch.h"

namespace weft {

struct DotOperands {
  ContractionShape shape;      ///< `depth` is the last of the reduced dims
  unsigned depth = 0;          ///< along which both are contiguous
  unsigned column = 0;         ///< innermost dim of the result, of one operand
  std::optional<unsigned> row; ///< the longest of the other operand's
  llvm::SmallVector<unsigned> outer;
  ContractionOperand rows, columns;

  static llvm::FailureOr<DotOperands> match(mlir::linalg::GenericOp generic, IndexSpace &space);

  /// Elements between neighbouring columns, and rows.
  int64_t columnStride(const IndexSpace &space) const {
    return *space.coefficientOf(columns.position, column);
  }
  int64_t rowStride(const IndexSpace &space) const {
    return row ? *space.coefficientOf(rows.position, *row) : 0;
  }

  /// Whether columns come from behind the second-level cache, where they would be waited for.
  bool fetchesColumns(const IndexSpace &space, const TargetInfo &target) const;

  /// The share that a tile, number `tile` of `tiles` of rows, takes in prefetching the `count`
  /// columns behind those of `point`, at its step.
  void emitFetch(ElementEmitter &point, int64_t count, mlir::Value tile, int64_t tiles,
                 CacheLevel level) const;

  /// Prefetches the `count` columns of `point` where they are `steps` steps of the sum further;
  /// those behind them, from their start on, where they end before.
  void emitFetchAhead(ElementEmitter &point, int64_t count, int64_t steps) const;

private:
  /// The first of the `count` columns behind those of `point`, or of the last.
  mlir::Value nextColumn(ElementEmitter &point, int64_t count) const;
};

} // namespace weft

#endif
