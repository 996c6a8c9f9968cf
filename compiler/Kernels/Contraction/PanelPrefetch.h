// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prefetches packed B one panel ahead. Only the first row tile that reads a panel misses the
// caches: so each row tile prefetches a part of the next chunk of the panel, or of the panel that
// replaces it in the next block of panels.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PANELPREFETCH_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PANELPREFETCH_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

class PanelPrefetch : private IndexArithmetic {
public:
  /// Bytes of B, if its panels follow one another in memory, each in the order of the sum; else 0.
  static int64_t packedBytes(const ContractionRoles &roles, llvm::ArrayRef<unsigned> reduced,
                             const IndexSpace &space);

  /// `reduced`: the dims of a chunk.
  PanelPrefetch(ElementEmitter &point, const ContractionRoles &roles,
                llvm::ArrayRef<unsigned> reduced, int64_t lines)
      : IndexArithmetic(point.builder, point.loc), point(point), roles(roles), reduced(reduced),
        lines(lines) {}

  /// Starts a tile of the point's panel in row tile `turn`, before it sums `steps` steps of the
  /// innermost reduced dim from `start` on, and all of the others. The prefetched data follows
  /// these steps and `panelsBetween` more panels.
  void startTile(mlir::Value turn, mlir::Value start, int64_t steps, int64_t panelsBetween);

  /// Prefetches the lines assigned to the point's step, one of every `stepsPerFetch`.
  void emit();

private:
  static constexpr int64_t stepsPerFetch = ContractionSchedule::stepsPerFetch;

  int64_t lineElements() const;

  ElementEmitter &point;
  const ContractionRoles &roles;
  llvm::ArrayRef<unsigned> reduced;
  int64_t lines;
  mlir::Value panelStart, shareStart; ///< element offsets
};

} // namespace weft

#endif
