// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contractions with both operands contiguous along the reduction (A B^T, row-major).
#ifndef WEFT_COMPILER_KERNELS_DOTPRODUCT_DOTOPERANDS_H
#define WEFT_COMPILER_KERNELS_DOTPRODUCT_DOTOPERANDS_H

#include "compiler/Kernels/Contraction/ContractionShape.h"
#include "compiler/Kernels/Emission/ElementEmitter.h"
#include "compiler/Kernels/Emission/Prefetch.h"

namespace weft {

struct DotOperands {
  ContractionShape shape;      ///< `depth` is the last of the reduced dims
  unsigned depth = 0;          ///< reduced dim along which both are contiguous
  unsigned column = 0;         ///< innermost dim of the result, from operand `columns`
  std::optional<unsigned> row; ///< the longest free dim of operand `rows`
  llvm::SmallVector<unsigned> outer;
  ContractionOperand rows, columns;

  static llvm::FailureOr<DotOperands> match(mlir::linalg::GenericOp generic, IndexSpace &space);

  /// Strides between consecutive columns, and rows, in elements.
  int64_t columnStride(const IndexSpace &space) const {
    return *space.coefficientOf(columns.position, column);
  }
  int64_t rowStride(const IndexSpace &space) const {
    return row ? *space.coefficientOf(rows.position, *row) : 0;
  }

  /// Prefetches the share of tile number `tile` of `tiles` of the `count` columns after those of
  /// the point, at the point's step.
  void emitFetch(ElementEmitter &point, int64_t count, mlir::Value tile, int64_t tiles,
                 CacheLevel level) const;

  /// Prefetches the point's `count` columns `steps` steps ahead; past the end of the reduction, the
  /// start of the columns after them.
  void emitFetchAhead(ElementEmitter &point, int64_t count, int64_t steps) const;

private:
  /// The first of the `count` columns after those of the point, clamped to the last ones.
  mlir::Value nextColumn(ElementEmitter &point, int64_t count) const;
};

} // namespace weft

#endif
