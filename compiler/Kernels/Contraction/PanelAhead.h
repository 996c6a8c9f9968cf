// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The panel of vectors that a thread reads next, where the steps of a sum lie apart: while rows go
// by the panel before it, each turn of rows takes a share of its steps, one after the other.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PANELAHEAD_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PANELAHEAD_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

class PanelAhead : private IndexArithmetic {
public:
  /// `depth`: the reduced dim. Of a panel of `lanes`, `steps` at a time.
  PanelAhead(ElementEmitter &point, const ContractionRoles &roles, unsigned depth, int64_t lanes,
             int64_t steps)
      : IndexArithmetic(point.builder, point.loc), point(point), roles(roles), depth(depth),
        lanes(lanes), steps(steps) {}

  /// At a tile of the point's panel in turn `turn`, before its sums of the `size` steps from
  /// `start` on. As many from `nextStart` on come next, of the panel `panelsAhead` further, or of
  /// the last.
  void startTile(mlir::Value turn, mlir::Value start, int64_t size, mlir::Value nextStart,
                 int64_t panelsAhead);

  /// Emits `body` with the point in the next panel, for the first of the steps, counted from
  /// `nextStart`, that belong to the step where the point stands: one of every
  /// `ContractionSchedule::stepsPerFetch`. It may lie behind the last.
  void visit(llvm::function_ref<void(mlir::Value first)> body);

  /// Moves the point to `step`, or to the last; returns which it is.
  mlir::Value moveTo(mlir::Value step);

  /// Whether there is such a step.
  mlir::Value has(mlir::Value step) {
    return is(mlir::arith::CmpIPredicate::ule, step, constant(last));
  }

  /// Steps of a turn's share of `size`.
  int64_t stepsOfTurn(int64_t size) const {
    return size / ContractionSchedule::stepsPerFetch * steps;
  }

private:
  ElementEmitter &point;
  const ContractionRoles &roles;
  unsigned depth;
  int64_t lanes, steps;
  int64_t last = 0;                     ///< step
  mlir::Value begin, share, next, lane; ///< of this tile, of its turn, of what comes next
};

} // namespace weft

#endif
