// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of a contraction from which its schedule is chosen.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONPROBLEM_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONPROBLEM_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace mlir {
class Type;
} // namespace mlir

namespace weft {

class IndexSpace;
struct ContractionRoles;
struct ContractionShape;

/// A contraction as its schedule sees it. Vectors are loaded from one operand (B) along its lane
/// dim; the other operand (A) is broadcast, row by row.
struct ContractionProblem {
  unsigned elementBits = 32;
  bool pairs = false;         ///< bf16 operands that suit a dot product of VNNI pairs
  bool stridedPairs = false;  ///< bf16, with A contiguous across rows and strided along k
  int64_t batches = 1;        ///< each with its own rows and panels
  int64_t rowCount = 1;       ///< extent of the dim along which tile rows run
  int64_t outerRows = 1;      ///< other free iterations of the broadcast operand
  int64_t rowStrideBytes = 0; ///< between rows of A
  int64_t laneCount = 1;      ///< extent of the lane dim
  int64_t outerPanels = 1;    ///< other free iterations of the vector operand
  int64_t lastLanes = 1;      ///< valid lanes of the last outer panel; its others are padding
  llvm::SmallVector<int64_t> reduced; ///< extents, outermost first
  int64_t scalarBytes = 0;            ///< bytes read of A
  int64_t vectorBytes = 0;            ///< bytes read of B
  int64_t vectorElementBytes = 4;     ///< of an element of B
  int64_t flops = 0;                  ///< without those of padding
  bool rowsOutermost = false;         ///< rows, not panels, are the outermost dim of the result
  bool scalarsContiguous = false;     ///< A along its only reduced dim, without outer rows
  int64_t packedBytes = 0;            ///< of B, if its panels follow one another, packed; else 0
  bool lanewise = false;              ///< not all lanes of a vector share their scalar
  int64_t vectorStrideBytes = 0;      ///< of B between steps, if rows of one panel; else 0
  bool coldVectors = false;           ///< B is in no cache at the start of a call
  int64_t scalarStrideBytes = 0;      ///< of A along k, if rows are contiguous; else 0
  int64_t matrixParts =
      0; ///< bfloat16 parts of an operand on AMX; 0 if the contraction does not suit AMX
  bool canSpill = false;       ///< partial sums may be stored in the result between chunks
  bool transcendental = false; ///< the epilogue calls transcendental functions

  /// All fields but those that depend on the kernel around it. `element`: type of the sums.
  static ContractionProblem of(const ContractionShape &shape, const ContractionRoles &roles,
                               const IndexSpace &space, mlir::Type element);
};

} // namespace weft

#endif
