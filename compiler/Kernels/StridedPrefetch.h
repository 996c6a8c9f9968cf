// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors of a contraction whose steps lie apart, as those of row-major weights, fetched a panel
// ahead: processors do not look from one page to the next by themselves. As with packed panels,
// each turn of rows fetches a share of what comes next, while it computes with what is there.
#ifndef WEFT_COMPILER_KERNELS_STRIDEDPREFETCH_H
#define WEFT_COMPILER_KERNELS_STRIDEDPREFETCH_H

#include "compiler/Kernels/ContractionRoles.h"
#include "compiler/Kernels/ContractionSchedule.h"
#include "compiler/Kernels/IndexArithmetic.h"

namespace weft {

class StridedPrefetch : private IndexArithmetic {
public:
  /// `depth`: the reduced dim. A fetch asks for what `steps` steps read of a panel of `lanes`.
  StridedPrefetch(PointEmitter &point, const ContractionRoles &roles, unsigned depth, int64_t lanes,
                  int64_t steps)
      : IndexArithmetic(point.builder, point.loc), point(point), roles(roles), depth(depth),
        lanes(lanes), steps(steps) {}

  /// At a tile of the point's panel in turn `turn`, before its sums: of `size` steps from `start`
  /// on. What is fetched are as many from `nextStep` on of the panel that is `panelsAhead` further,
  /// or of the last.
  void startTile(mlir::Value turn, mlir::Value start, int64_t size, mlir::Value nextStep,
                 int64_t panelsAhead);

  /// Fetches what belongs to the point's step, one of every `ContractionSchedule::stepsPerFetch`.
  void emit();

private:
  PointEmitter &point;
  const ContractionRoles &roles;
  unsigned depth;
  int64_t lanes, steps;
  int64_t lastFetch = 0;                 ///< step of the next chunk at which a fetch may begin
  mlir::Value begin, share, first, lane; ///< of this tile, of its turn, of what is fetched
};

} // namespace weft

#endif
