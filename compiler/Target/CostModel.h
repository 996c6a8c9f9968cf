// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What work costs: the times by which schedules are compared. A step is one iteration of the
// innermost reduction; unless said otherwise, times are in multiply-adds of a vector register, of
// which a core is supposed to begin as many in a cycle as it loads.
#ifndef WEFT_COMPILER_TARGET_COSTMODEL_H
#define WEFT_COMPILER_TARGET_COSTMODEL_H

#include <cstdint>

namespace weft {

/// Register tiles in which each of `rows` elements is broadcast and multiplied by `groups` vectors.
struct BroadcastTiles {
  double rows = 1;       ///< of a tile, on average
  int64_t groups = 1;    ///< vectors of a tile's row
  int64_t tallest = 1;   ///< rows for which there are registers
  int64_t allRows = 1;   ///< of the result
  double lanesUsed = 1;  ///< share of the vectors' lanes that are of the result
  bool lanewise = false; ///< the rows are vectors, too, whose windows overlap
  bool aliased = false;  ///< rows compete for the ways of one set of L1
  bool isUneven = false; ///< tiles differ in height

  /// Of one useful multiply-add, with all that a tile costs beside them.
  double ofMultiplyAdd() const;
};

/// Panels of a matrix that is read once, by tiles that have all rows.
struct StreamedPanels {
  int64_t panels = 1; ///< a multiple of the threads
  int64_t groups = 1; ///< vectors of a panel

  /// Of a step of all panels, in loads of a vector.
  double ofStep() const;
};

/// Register tiles whose vectors run along the reduction: a vector of each row times one of each
/// column.
struct DotTile {
  int64_t rows = 1, columns = 1;

  double ofStep() const;
};

/// Register tiles in which a vector holds several rows and each column is broadcast to them.
struct SegmentedTile {
  int64_t groups = 1; ///< vectors of rows
  double last = 0;    ///< a lone last row's vectors for each step, a fraction of one
  int64_t columns = 1;
  bool rowsInL1 = true; ///< packed rows stay in L1; L2 otherwise

  double ofStep() const;
  /// Of reducing the sums of one vector of rows across the segments of a vector, and of adding
  /// them to the result. `segments`: the lanes of a row in a vector.
  static double ofSums(int64_t columns, int64_t segment, int64_t rowsOfVector);
};

/// Tiles of rows that threads divide. In rows.
struct DividedRows {
  int64_t rows = 1, tiles = 1; ///< of one block
  int64_t blocks = 1, threads = 1;

  int64_t ofThread() const;
};

/// A product that AMX may compute, or vectors. In cycles of a core.
struct MatrixProduct {
  double rows = 1, lanes = 1, depth = 1; ///< padded to whole blocks of the unit
  double useful = 1;                     ///< multiply-adds without padding
  int64_t panels = 1;                    ///< that stay in L2
  int64_t threads = 1;
  bool splits = false;       ///< float32 in three parts
  bool sharesPanels = false; ///< each thread packs panels of its own
  bool misses = false;       ///< vectors read panels from memory

  double onUnit() const;
  double onVectors() const;
  bool paysOnUnit() const;
};

/// The cycles of a core for so many multiply-adds of a vector register.
double cyclesOf(double multiplyAdds);

} // namespace weft

#endif
