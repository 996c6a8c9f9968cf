// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The register tiles of a contraction, and the pieces of work along each of its loops.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONGRID_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONGRID_H

#include "compiler/Kernels/Contraction/ContractionProblem.h"
#include "mlir/IR/Builders.h"

namespace weft {

struct ContractionSchedule;

struct ContractionGrid {
  /// The parallel loop. Blocks: all rows of a block of panels, then those of the next block.
  enum Split { Batches, Rows, Panels, Blocks };
  static constexpr llvm::StringLiteral splitNames[] = {"batches", "rows", "panels", "blocks"};

  int64_t batches = 1;
  int64_t rowCount = 1, rowTiles = 1, outerRows = 1;
  int64_t vectors = 1;       ///< vectors along the lane dim
  int64_t paddedVectors = 0; ///< vectors of the last outer panel that are all padding
  int64_t groups = 1;        ///< vectors of a tile
  int64_t laneBlocks = 1, outerPanels = 1;
  int64_t rowPieces = 1;     ///< equal pieces of work along all rows
  int64_t panelsOfBlock = 1; ///< panels of a block if the split is Blocks
  int64_t threads = 2;       ///< of the team
  Split split = Rows;

  /// Tiles of at most `rows` x `groups` vectors of `width` lanes, for a team of `threads`.
  static ContractionGrid of(const ContractionProblem &problem, int64_t rows, int64_t groups,
                            int64_t width, int64_t threads);

  /// The grid that `schedule` has chosen.
  static ContractionGrid of(const ContractionProblem &problem, const ContractionSchedule &schedule,
                            int64_t threads);

  int64_t rows() const { return rowTiles * outerRows; }
  int64_t panels() const { return laneBlocks * outerPanels; }
  /// Rows of the tallest tile; others may have one less.
  int64_t tallest() const;
  /// Row tiles that one thread computes with each panel.
  int64_t turnsOfThread() const { return split == Rows ? rows() / threads : rows(); }
  /// Whether the tiles differ in height.
  bool isUneven() const { return rowCount % rowTiles != 0; }

  /// Pieces of work along `split`: equal, except that panels may have fewer vectors.
  int64_t pieces() const { return piecesOf(split); }
  int64_t piecesOf(Split split) const;

  /// Parallel efficiency along `split`: 1 if all threads finish at once.
  double balance(Split split) const;

private:
  /// Number of vectors in the first `panels` panels.
  int64_t vectorsOf(int64_t panels) const;
};

} // namespace weft

#endif
