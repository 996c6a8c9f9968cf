// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors of a contraction whose steps lie apart, side by side: a panel of row-major weights is
// short runs of many pages, which crowd into few sets of the caches, for all the rows that go by.
// Each panel is copied once, in this thread's scratch, and as a line takes long to come, while the
// rows go by the panel before it: each turn of rows copies a share.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PACKEDBPANEL_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PACKEDBPANEL_H

#include "compiler/Kernels/Contraction/PanelAhead.h"
#include "compiler/Kernels/Contraction/PanelBuffer.h"
#include "compiler/Kernels/Emission/RegisterTile.h"

namespace weft {

class PackedBPanel : private IndexArithmetic {
public:
  /// Reserves scratch for two panels. `depth`: the reduced dim.
  PackedBPanel(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
               const ContractionRoles &roles, unsigned depth, const ContractionSchedule &schedule);

  /// The point stands at the panel, with its lanes, that is number `number` of all that this thread
  /// reads, chunk by chunk. Copies of `chunkSize` steps from `chunkStart` on what has not been
  /// copied in `turns` turns of rows of the panel before it; all if it `isFirst`.
  void enter(mlir::Value number, mlir::Value chunkStart, int64_t chunkSize, mlir::Value turns,
             mlir::Value isFirst);

  /// What comes next.
  PanelAhead &nextPanel() { return next; }

  /// Copies of it what belongs to the point's step, and fetches what is copied two visits later.
  void emitAhead();

  TileOperand operand() const { return {scratch.memory, scratch.position}; }

private:
  void copyStep(mlir::Value to);

  ElementEmitter &point;
  const ContractionRoles &roles;
  unsigned depth;
  int64_t groups, lanes, stepsAtOnce;
  mlir::VectorType type;
  PanelBuffer scratch;
  mlir::Value other; ///< element of the scratch where the next panel begins
  PanelAhead next;
};

} // namespace weft

#endif
