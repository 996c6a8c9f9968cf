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
  int64_t threads = 2;       ///< of the team
  Split split = Rows;

  /// Tiles of at most `rows` x `groups` vectors of `width` lanes, for a team of `threads`.
  static ContractionGrid of(const ContractionProblem &problem, int64_t rows, int64_t groups,
                            int64_t width, int64_t threads);

  int64_t rows() const { return rowTiles * outerRows; }
  int64_t panels() const { return laneBlocks * outerPanels; }
  /// The rows of a tile; some may have one less.
  int64_t tallest() const;
  /// Tiles of rows that one thread goes through with a panel.
  int64_t turnsOfThread() const { return split == Rows ? rows() / threads : rows(); }
  /// Whether not all tiles are as tall.
  bool isUneven() const { return rowCount % rowTiles != 0; }

  /// Equal pieces of work along `split`, but for panels of fewer vectors.
  int64_t pieces() const { return piecesOf(split); }
  int64_t piecesOf(Split split) const;

  /// The share of the threads' time that is spent working, along `split`: 1 where all end at once.
  double balance(Split split) const;

  /// Chooses `split`: what the threads divide with little left over, and so that each goes on with
  /// what lies in its own caches. `l2Bytes`: of the second-level cache of each.
  void chooseSplit(const ContractionProblem &problem, const ContractionSchedule &schedule,
                   int64_t l2Bytes);

private:
  /// Whether each thread goes on with its own rows, even if all then read more vectors.
  bool keepsRows(const ContractionProblem &problem, const ContractionSchedule &schedule,
                 int64_t l2Bytes) const;
  /// Takes the first loop that divides among the threads with little left over.
  void splitEvenly();
  /// How many tiles more divide the rows evenly among the threads, in the least time; 0 where none
  /// do, or where they are even.
  int64_t tilesToBeEven() const;
  /// Where `split` leaves much over: row tiles, which may have fewer rows, become more.
  void evenRows();

  /// Whether every thread gets a block of `ofBlock` panels or more of one batch, all as large.
  bool hasBlocks(int64_t ofBlock) const;

  /// Vectors of the first `panels` of them.
  int64_t vectorsOf(int64_t panels) const;
};

} // namespace weft

#endif
