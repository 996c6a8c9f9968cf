// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed B panels for strided B: a panel of row-major weights is short runs on many pages, which
// alias to few cache sets, for all row tiles. Each panel is packed once into this thread's scratch,
// and to hide memory latency while the row tiles use the panel before: each row tile packs a share.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PACKEDBPANEL_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PACKEDBPANEL_H

#include "compiler/Kernels/Contraction/PanelAhead.h"
#include "compiler/Kernels/Contraction/PanelBuffer.h"
#include "compiler/Kernels/Emission/RegisterTile.h"

namespace weft {

class PackedBPanel : private IndexArithmetic {
public:
  /// Reserves scratch for two panels (double buffering). `depth`: the reduced dim.
  PackedBPanel(KernelFunction &kernel, ElementEmitter &point, mlir::Location loc,
               const ContractionRoles &roles, unsigned depth, const ContractionSchedule &schedule);

  /// Makes panel `number`, of all that this thread reads, chunk by chunk, current; the point is at
  /// the panel, with its lanes. Packs what `turns` row tiles of the previous panel left of the
  /// `chunkSize` steps from `chunkStart` on; everything if it `isFirst`.
  void enter(mlir::Value number, mlir::Value chunkStart, int64_t chunkSize, mlir::Value turns,
             mlir::Value isFirst);

  /// The panel to be packed next.
  PanelAhead &nextPanel() { return next; }

  /// Packs the next panel's steps assigned to the point's step, and prefetches those packed two
  /// visits later.
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
