// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each operand and each free dim of a contraction does in the register tile.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTIONROLES_H
#define WEFT_COMPILER_KERNELS_CONTRACTIONROLES_H

#include "compiler/Kernels/ContractionShape.h"

namespace weft {

struct ContractionRoles {
  ContractionOperand vectors; ///< read as vectors along `lane`
  ContractionOperand scalars; ///< broadcast element by element, or vectors too if `lanewise`
  unsigned lane = 0;
  bool lanewise = false;                   ///< `lane` is a batch dim: lanes do not share scalars
  std::optional<unsigned> row;             ///< tile rows run along this dim of `scalars`
  llvm::SmallVector<unsigned> outerRows;   ///< other free dims of `scalars`
  llvm::SmallVector<unsigned> outerPanels; ///< other free dims of `vectors`
  llvm::SmallVector<unsigned> batch;       ///< batch dims but `lane`

  /// Fails unless one operand is contiguous along the result's innermost dim, or both are
  /// and one has a free dim for tile rows.
  static llvm::FailureOr<ContractionRoles> choose(const ContractionShape &shape,
                                                  const IndexSpace &space);
};

} // namespace weft

#endif
