// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed vectors of a contraction, fetched a panel ahead. A panel serves all rows, from the
// caches after the first of them, which waits for memory: so each turn of rows fetches a
// share of what comes next, while it computes with this: of the next chunk of the panel, or of the
// panel that takes its place in the next block of panels.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_PANELPREFETCH_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_PANELPREFETCH_H

#include "compiler/Kernels/Contraction/ContractionRoles.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/Index/IndexArithmetic.h"

namespace weft {

class PanelPrefetch : private IndexArithmetic {
public:
  /// Whether panels lie one after the other, in the order of the sum, and come from memory.
  static bool suits(const ContractionRoles &roles, llvm::ArrayRef<unsigned> reduced,
                    const IndexSpace &space);

  /// Lines to fetch at a time so that `turns` turns of rows fetch what comes next: as much as a
  /// chunk of `steps` steps. 0 where that does not fit the second-level cache beside the chunk.
  static int64_t linesPerFetch(const ContractionRoles &roles, const IndexSpace &space,
                               int64_t steps, int64_t turns, int64_t l2Bytes);

  /// `reduced`: the dims of a chunk.
  PanelPrefetch(ElementEmitter &point, const ContractionRoles &roles,
                llvm::ArrayRef<unsigned> reduced, int64_t lines)
      : IndexArithmetic(point.builder, point.loc), point(point), roles(roles), reduced(reduced),
        lines(lines) {}

  /// At a tile of the point's panel in turn `turn`, before its sums: of `steps` steps of the
  /// innermost reduced dim from `start` on, and all of the others. What is fetched lies behind
  /// these and `panelsBetween` panels more.
  void startTile(mlir::Value turn, mlir::Value start, int64_t steps, int64_t panelsBetween);

  /// Fetches what belongs to the point's step, one of every `stepsPerFetch`.
  void emit();

private:
  static constexpr int64_t stepsPerFetch = ContractionSchedule::stepsPerFetch;

  int64_t lineElements() const;

  ElementEmitter &point;
  const ContractionRoles &roles;
  llvm::ArrayRef<unsigned> reduced;
  int64_t lines;
  mlir::Value panelStart, shareStart; ///< elements
};

} // namespace weft

#endif
