// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors of a contraction whose steps lie apart, as those of row-major weights, fetched a panel
// ahead: processors do not look from one page to the next by themselves. As with packed panels,
// each turn of rows fetches a share of what comes next, while it computes with what is there.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_STRIDEDPREFETCH_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_STRIDEDPREFETCH_H

#include "compiler/Kernels/Contraction/PanelAhead.h"

namespace weft {

class StridedPrefetch : private IndexArithmetic {
public:
  /// `depth`: the reduced dim.
  StridedPrefetch(ElementEmitter &point, const ContractionRoles &roles, unsigned depth,
                  const ContractionSchedule &schedule)
      : IndexArithmetic(point.builder, point.loc), point(point), roles(roles),
        lanes(schedule.groups * schedule.width), steps(schedule.stridedPrefetch),
        next(point, roles, depth, lanes, steps) {}

  /// What comes next.
  PanelAhead &nextPanel() { return next; }

  /// Fetches what belongs to the point's step.
  void emit();

private:
  ElementEmitter &point;
  const ContractionRoles &roles;
  int64_t lanes, steps;
  PanelAhead next;
};

} // namespace weft

#endif
