// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plain numbers of a contraction from which its schedule is chosen.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONPROBLEM_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONPROBLEM_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace mlir {
class Type;
}

namespace weft {

class IndexSpace;
struct ContractionRoles;
struct ContractionShape;

/// What a contraction looks like to its schedule. Vectors are taken from one operand along
/// its lane dim; the other operand is broadcast, row by row.
struct ContractionProblem {
  unsigned elementBits = 32;
  bool pairs = false;                 ///< of bf16, whose neighbouring steps may be summed at once
  bool stridedPairs = false;          ///< of bf16, with rows side by side and steps apart
  int64_t batches = 1;                ///< of which each has rows and vectors of its own
  int64_t rowCount = 1;               ///< extent of the dim along which tile rows run
  int64_t outerRows = 1;              ///< other free iterations of the broadcast operand
  int64_t rowStrideBytes = 0;         ///< between rows of the broadcast operand
  int64_t laneCount = 1;              ///< extent of the lane dim
  int64_t outerPanels = 1;            ///< other free iterations of the vector operand
  int64_t lastLanes = 1;              ///< of the last of them: its other lanes are padding
  llvm::SmallVector<int64_t> reduced; ///< extents, outermost first
  int64_t scalarBytes = 0;            ///< read of the broadcast operand
  int64_t vectorBytes = 0;            ///< read of the vector operand
  bool rowsOutermost = false;         ///< of the result, rather than panels
  bool scalarsContiguous = false;     ///< along its only reduced dim, with no other free dim
  bool panelsFetched = false;         ///< panels of vectors can be fetched one ahead
  bool lanewise = false;              ///< lanes do not all share their scalars
  bool vectorsStrided = false;        ///< steps of the only sum are far apart, lanes side by side
  bool coldVectors = false;           ///< no cache has kept them since the call before
  bool scalarsStrided = false;        ///< rows lie side by side, steps of a sum a page apart
  int64_t matrixParts =
      0; ///< bfloat16 parts of an operand on the matrix unit; 0 where it does not fit
  bool canSpill = false;       ///< partial sums may wait in the result between chunks
  bool transcendental = false; ///< the epilogue holds functions of many instructions

  /// All but what the epilogue says. `element`: of the sums.
  static ContractionProblem of(const ContractionShape &shape, const ContractionRoles &roles,
                               const IndexSpace &space, mlir::Type element);
};

} // namespace weft

#endif
