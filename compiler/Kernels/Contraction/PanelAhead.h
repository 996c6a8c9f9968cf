// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Iterates over the next panel of strided B while row tiles use the current one: each row tile
// handles a share of its steps, in order.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PANELAHEAD_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PANELAHEAD_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

class PanelAhead : private IndexArithmetic {
public:
  /// `depth`: the reduced dim. Visits handle `steps` steps of a panel of `lanes` lanes.
  PanelAhead(ElementEmitter &point, const ContractionRoles &roles, unsigned depth, int64_t lanes,
             int64_t steps)
      : IndexArithmetic(point.builder, point.loc), point(point), roles(roles), depth(depth),
        lanes(lanes), steps(steps) {}

  /// Starts a tile of the point's panel in row tile `turn`, before it sums the `size` steps from
  /// `start` on. The next panel's steps are the `size` steps from `nextStart` on, of the panel
  /// `panelsAhead` further, or the last one.
  void startTile(mlir::Value turn, mlir::Value start, int64_t size, mlir::Value nextStart,
                 int64_t panelsAhead);

  /// Emits `body` with the point in the next panel. `first`: the first of the steps, relative to
  /// `nextStart`, assigned to the point's step. Called every `ContractionSchedule::stepsPerFetch`
  /// steps. `first` may be past the last step.
  void visit(llvm::function_ref<void(mlir::Value first)> body);

  /// Moves the point to `step`, clamped to the last step; returns the clamped step.
  mlir::Value moveTo(mlir::Value step);

  /// Whether `step` is not past the last.
  mlir::Value has(mlir::Value step) {
    return is(mlir::arith::CmpIPredicate::ule, step, constant(last));
  }

  /// Steps that one row tile handles while it sums `size` steps.
  int64_t stepsOfTurn(int64_t size) const {
    return size / ContractionSchedule::stepsPerFetch * steps;
  }

private:
  ElementEmitter &point;
  const ContractionRoles &roles;
  unsigned depth;
  int64_t lanes, steps;
  int64_t last = 0;                     ///< last step
  mlir::Value begin, share, next, lane; ///< first step of this tile, first step of its share, first
                                        ///< step and lane of the next panel
};

} // namespace weft

#endif
