// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The role of each operand and each free dim of a contraction in the register tile.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONROLES_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONROLES_H

#include "compiler/Kernels/Contraction/ContractionShape.h"

namespace weft {

struct ContractionRoles {
  ContractionOperand vectors; ///< read as vectors along `lane`
  ContractionOperand scalars; ///< broadcast element by element, or each to a few lanes
  unsigned lane = 0;
  /// Consecutive lanes that share a scalar (0: all lanes do), and the stride in memory between the
  /// scalars of one vector. 1 and 1 if `lane` is a batch dim.
  int64_t lanesPerScalar = 0, scalarGap = 0;
  std::optional<unsigned> row;             ///< tile rows run along this dim of `scalars`
  llvm::SmallVector<unsigned> outerRows;   ///< the other free dims of `scalars`
  llvm::SmallVector<unsigned> outerPanels; ///< the other free dims of `vectors`
  llvm::SmallVector<unsigned> batch;       ///< batch dims other than `lane`

  /// The free dims of the scalars, outermost first.
  llvm::SmallVector<unsigned> rowDims() const {
    llvm::SmallVector<unsigned> dims = outerRows;
    if (row)
      dims.push_back(*row);
    return dims;
  }
  /// Elements between tile rows of the scalars; 0 without rows.
  int64_t rowStride(const IndexSpace &space) const {
    return row ? *space.coefficientOf(scalars.position, *row) : 0;
  }

  /// Fails unless one operand is contiguous along the result's innermost dim, or both are and one
  /// has a free dim for tile rows. Vectors have `width` lanes; narrower groups become part of the
  /// lane dim of `shape`.
  static llvm::FailureOr<ContractionRoles> choose(ContractionShape &shape, IndexSpace &space,
                                                  int64_t width);
};

} // namespace weft

#endif
