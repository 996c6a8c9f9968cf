// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The register tiles of a contraction, and which of its loops the threads divide.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONGRID_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONGRID_H

#include "compiler/Kernels/Contraction/ContractionProblem.h"

namespace weft {

struct ContractionSchedule;

struct ContractionGrid {
  /// Blocks: all rows of a block of panels, then those of the next.
  enum Split { Batches, Rows, Panels, Blocks };

  int64_t batches = 1;
  int64_t rowCount = 1, rowTiles = 1, outerRows = 1;
  int64_t vectors = 1;       ///< along the lane dim
  int64_t paddedVectors = 0; ///< of these in the last outer panel, that hold nothing
  int64_t groups = 1;        ///< of them in a tile
  int64_t laneBlocks = 1, outerPanels = 1;
  int64_t rowPieces = 1;     ///< of equal work, along all rows
  int64_t panelsOfBlock = 1; ///< of which there are whole blocks, where these are divided
  Split split = Rows;

  /// Tiles of at most `rows` x `groups` vectors of `width` lanes.
  static ContractionGrid of(const ContractionProblem &problem, int64_t rows, int64_t groups,
                            int64_t width);

  int64_t rows() const { return rowTiles * outerRows; }
  int64_t panels() const { return laneBlocks * outerPanels; }
  /// The rows of a tile; some may have one less.
  int64_t tallest() const;
  /// Turns of rows that a panel is read by in one of two threads.
  int64_t turnsOfThread() const { return split == Rows ? rows() / 2 : rows(); }
  /// Whether not all tiles are as tall.
  bool isUneven() const { return rowCount % rowTiles != 0; }

  /// Equal pieces of work along `split`, but for panels of fewer vectors.
  int64_t pieces() const { return piecesOf(split); }
  int64_t piecesOf(Split split) const;

  /// The share of two threads' time that is spent working, along `split`.
  double balance(Split split) const;

  /// Chooses `split`: what two threads divide with little left over, and so that each goes on with
  /// what lies in its own caches. `l2Bytes`: of the second-level cache of each.
  void chooseSplit(const ContractionProblem &problem, const ContractionSchedule &schedule,
                   int64_t l2Bytes);

private:
  /// Whether each thread goes on with its own rows, even if both then read more vectors.
  bool keepsRows(const ContractionProblem &problem, const ContractionSchedule &schedule,
                 int64_t l2Bytes) const;
  /// Takes the first loop that divides among two threads with little left over.
  void splitEvenly();
  /// Whether one tile more divides the rows evenly.
  bool canBeEven() const { return rows() % 2 == 1 && rowTiles < rowCount; }
  /// Where `split` leaves much over: an odd number of row tiles, which may have fewer rows, gets
  /// one more.
  void evenRows();

  /// Whether there are two blocks of `ofBlock` panels or more of one batch, and all as large.
  bool hasBlocks(int64_t ofBlock) const;

  /// Vectors of the first `panels` of them.
  int64_t vectorsOf(int64_t panels) const;
};

} // namespace weft

#endif
