// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scalars of a few tiles of a contraction, side by side in this thread's scratch. Where
// the steps of a sum lie far apart each is a page and a cache line of its own; copied once,
// every panel that goes by reads them from the first-level cache.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PACKEDAPANEL_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PACKEDAPANEL_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Emission/RegisterTile.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// Scratch of [step of the chunk][row of the strip], or where steps are summed two at a time of
/// [pair of steps][row of the strip][step of the pair].
class PackedAPanel : private IndexArithmetic {
public:
  /// Whether the rows of the scalars lie side by side and the steps of their only reduced
  /// dim far apart, so that a strip is a copy of vectors of `element`.
  static bool suits(const ContractionRoles &roles, const ContractionShape &shape,
                    const IndexSpace &space, mlir::Type element);

  /// Whether the rows lie side by side, so that a strip interleaves two steps' vectors of them.
  static bool suitsPairs(const ContractionRoles &roles, const ContractionShape &shape,
                         const IndexSpace &space);

  /// Reserves the scratch. `step` is the reduced dim; `schedule.strip` is not 0.
  PackedAPanel(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
               const ContractionRoles &roles, const ContractionSchedule &schedule, unsigned step);

  /// What is copied after a strip's last part, which ends at step `partsEnd`.
  struct Next {
    mlir::Value strip, start, partsEnd;
  };

  /// Copies the scalars of strip number `strip` for `steps` steps from `start` on.
  void emitCopy(mlir::Value strip, mlir::Value start, int64_t steps, const Next &next);

  /// operand() then begins at row number `tileRow` of the strip's tiles.
  void enterRow(mlir::Value tileRow);

  /// At tile number `tile` of the current row of at least `tilesOfRow`, which share the fetching
  /// of what is copied next with those of the strip's other rows.
  void enterTile(mlir::Value tile, int64_t tilesOfRow);

  /// Prefetches the current tile's share of the next copy that is up at the point's step, one of
  /// every stepsPerFetch().
  void emitPrefetch();
  int64_t stepsPerFetch() const { return interval; }

  /// The scalars of the tile at the point's step, whose rows lie rowStride() elements apart.
  TileOperand operand() const;
  int64_t rowStride() const { return stepsAtOnce; }

private:
  int64_t lines() const { return size / lineRows; }
  void copyStep(mlir::Value start, mlir::Value target, bool isOddLast);
  /// One vector of scalars, from the point's row on; anything behind the last row.
  mlir::Value loadRows(mlir::VectorType type, mlir::Value zero);

  ElementEmitter &point;
  const ContractionOperand &scalars;
  unsigned row, step; ///< dims of the space
  int64_t rowCount, size, tileRows, width, stepsAtOnce;
  int64_t lineRows; ///< that share a cache line
  mlir::Value memory;
  mlir::Value start;                     ///< of the steps in the strip
  int64_t steps = 0;                     ///< of the strip
  mlir::Value nextRow, nextStart;        ///< where the next copy begins
  mlir::Value tileRow;                   ///< number of the row of tiles
  mlir::Value fetchedRow, fetchedStep;   ///< where the current tile's share of it begins
  int64_t interval = 1, linesAtOnce = 1; ///< steps between two fetches, and lines of one
  unsigned firstRow = 0; ///< dim of the space: where the tile's first row lies in the strip
};

} // namespace weft

#endif
