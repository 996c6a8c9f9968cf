// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The A operand of a few row tiles, packed into this thread's scratch. If A has a large stride
// along k, each step is on a page and cache line of its own; packed once, all B panels reuse it
// from L1.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PACKEDAPANEL_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PACKEDAPANEL_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Emission/RegisterTile.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

/// Layout: [step of the chunk][row], or for VNNI pairs [pair of steps][row][step of the pair].
class PackedAPanel : private IndexArithmetic {
public:
  /// Bytes between steps of A's only reduced dim, if it is contiguous across rows, so that packing
  /// copies vectors of `element`; else 0.
  static int64_t strideBytes(const ContractionRoles &roles, const ContractionShape &shape,
                             const IndexSpace &space, mlir::Type element);

  /// Whether A is contiguous across rows, so that packing interleaves the vectors of two steps.
  static bool suitsPairs(const ContractionRoles &roles, const ContractionShape &shape,
                         const IndexSpace &space);

  /// Reserves the scratch. `step` is the reduced dim; `schedule.strip` is not 0.
  PackedAPanel(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
               const ContractionRoles &roles, const ContractionSchedule &schedule, unsigned step);

  /// What is packed after a panel's last part, which ends at step `partsEnd`.
  struct Next {
    mlir::Value strip, start, partsEnd;
  };

  /// Packs panel number `strip` for `steps` steps from `start` on.
  void emitCopy(mlir::Value strip, mlir::Value start, int64_t steps, const Next &next);

  /// Sets operand() to begin at row tile `tileRow` of the panel.
  void enterRow(mlir::Value tileRow);

  /// Sets the point's tile: number `tile` of at least `tilesOfRow` tiles of the current row. All
  /// tiles of the panel share the prefetching of what is packed next.
  void enterTile(mlir::Value tile, int64_t tilesOfRow);

  /// Prefetches the current tile's share of what is packed next, for the point's step; called every
  /// stepsPerFetch() steps.
  void emitPrefetch();
  int64_t stepsPerFetch() const { return interval; }

  /// A at the point's step, with rowStride() elements between rows.
  TileOperand operand() const;
  int64_t rowStride() const { return stepsAtOnce; }

private:
  int64_t lines() const { return size / lineRows; }
  void copyStep(mlir::Value start, mlir::Value target, bool isOddLast);
  /// A vector of rows from the point's row on; lanes past the last row are arbitrary.
  mlir::Value loadRows(mlir::VectorType type, mlir::Value zero);

  ElementEmitter &point;
  const ContractionOperand &scalars;
  unsigned row, step; ///< dims of the space
  int64_t rowCount, size, tileRows, width, stepsAtOnce;
  int64_t lineRows; ///< rows that share a cache line
  mlir::Value memory;
  mlir::Value start;                   ///< first step in the panel
  int64_t steps = 0;                   ///< number of steps in the panel
  mlir::Value nextRow, nextStart;      ///< where the next panel begins
  mlir::Value tileRow;                 ///< current row tile
  mlir::Value fetchedRow, fetchedStep; ///< where the current tile's share of the prefetching begins
  int64_t interval = 1, linesAtOnce = 1; ///< steps between two prefetches, and lines of each
  unsigned firstRow = 0;                 ///< dim of the space: the tile's first row in the panel
};

} // namespace weft

#endif
