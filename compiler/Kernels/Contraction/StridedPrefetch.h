// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prefetches strided B, as row-major weights, one panel ahead: hardware prefetchers do not cross
// pages. As with packed panels, each row tile prefetches a share of the next panel.
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

  /// The panel to be prefetched.
  PanelAhead &nextPanel() { return next; }

  /// Prefetches the steps assigned to the point's step.
  void emit();

private:
  ElementEmitter &point;
  const ContractionRoles &roles;
  int64_t lanes, steps;
  PanelAhead next;
};

} // namespace weft

#endif
