// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each operand and each free dim of a contraction does in the register tile.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONROLES_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONROLES_H

#include "compiler/Kernels/Contraction/ContractionShape.h"

namespace weft {

struct ContractionRoles {
  ContractionOperand vectors; ///< read as vectors along `lane`
  ContractionOperand scalars; ///< broadcast element by element, or for a few lanes each
  unsigned lane = 0;
  /// How many neighbouring lanes share a scalar, all if 0, and how far apart in memory the
  /// scalars of one vector lie: 1 and 1 where `lane` is a batch dim.
  int64_t lanesPerScalar = 0, scalarGap = 0;
  std::optional<unsigned> row;             ///< tile rows run along this dim of `scalars`
  llvm::SmallVector<unsigned> outerRows;   ///< other free dims of `scalars`
  llvm::SmallVector<unsigned> outerPanels; ///< other free dims of `vectors`
  llvm::SmallVector<unsigned> batch;       ///< batch dims but `lane`

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

  /// Fails unless one operand is contiguous along the result's innermost dim, or both are
  /// and one has a free dim for tile rows. Vectors have `width` lanes; groups that are
  /// narrower become part of the lane dim of `shape`.
  static llvm::FailureOr<ContractionRoles> choose(ContractionShape &shape, IndexSpace &space,
                                                  int64_t width);
};

} // namespace weft

#endif
