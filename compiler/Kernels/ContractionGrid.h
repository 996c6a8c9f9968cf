// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The register tiles of a contraction, and which of its loops the threads divide.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTIONGRID_H
#define WEFT_COMPILER_KERNELS_CONTRACTIONGRID_H

#include <cstdint>

namespace weft {

struct ContractionGrid {
  enum Split { Batches, Rows, Panels };

  int64_t batches = 1;
  int64_t rowTiles = 1, outerRows = 1;
  int64_t laneBlocks = 1, outerPanels = 1;
  int64_t rowPieces = 1; ///< of equal work, along all rows
  Split split = Rows;

  int64_t rows() const { return rowTiles * outerRows; }
  int64_t panels() const { return laneBlocks * outerPanels; }
  /// Equal pieces of work along `split`.
  int64_t pieces() const { return piecesOf(split); }
  int64_t piecesOf(Split split) const;

  /// The share of two threads' time that is spent working, along `split`.
  double balance(Split split) const;

  /// Take the first loop that divides among two threads with little left over.
  void chooseSplit();
};

} // namespace weft

#endif
