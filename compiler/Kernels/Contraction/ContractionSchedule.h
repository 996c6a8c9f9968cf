// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plain numbers that steer the contraction emitter, and how they are chosen: a
// function of shapes and the machine alone.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONSCHEDULE_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONSCHEDULE_H

#include "compiler/Kernels/Contraction/ContractionProblem.h"
#include "compiler/Kernels/Emission/ScheduleOverride.h"
#include "compiler/Target/TargetInfo.h"

namespace weft {

struct ContractionGrid;

struct ContractionSchedule {
  /// Steps of the innermost reduction between two fetches of what comes next: a line of float32.
  static constexpr int64_t stepsPerFetch = 16;

  int64_t rows = 6;            ///< MR: scalars of the broadcast operand held by a tile
  int64_t groups = 4;          ///< NR / lanes: vectors of the other operand
  int64_t width = 16;          ///< lanes of one vector
  int64_t chunk = 1;           ///< KC: iterations of the innermost reduction between spills
  int64_t outerChunks = 0;     ///< 1 where the outermost reduced dim is divided as well, by steps
  int64_t panels = 1;          ///< panels of vectors kept in L2 while the rows go by
  int64_t unroll = 1;          ///< KU
  int64_t copiedSteps = 0;     ///< of the next panel at a time, where vectors are copied
  bool paired = false;         ///< steps of bf16 two at a time, from interleaved panels
  int64_t segment = 1;         ///< innermost products after which sums join the totals in memory
  int64_t turns = 1;           ///< a share of the sums each time: one sum, all so many segments
  int64_t blockDims = 0;       ///< outer reduced dims that start a new segment with each step
  bool prefetch = false;       ///< the next rows while these compute
  int64_t panelPrefetch = 0;   ///< lines of what comes next of a panel at a fetch
  int64_t stridedPrefetch = 0; ///< steps of the next panel at a fetch, where they lie apart
  int64_t stepsAhead = 0;      ///< after which vectors are read that are fetched now, or 0
  int64_t strip = 0;           ///< rows whose scalars are copied side by side first, or 0
  int64_t stripLine = 0;       ///< those of them that share cache lines
  int64_t stripSteps = 0;      ///< of which so many steps of the chunk at a time
  bool matrixUnit = false;     ///< blocks on the matrix unit, and tiles for what it does not take
  bool tileEpilogue = false;   ///< epilogue on the stored tile instead of the accumulators

  /// What `given` holds is taken over unchecked; the rest is chosen to go with it.
  static ContractionSchedule choose(const ContractionProblem &problem, const TargetInfo &target,
                                    const ScheduleOverride &given = {});

  /// Whether it is one that can be emitted, where a ScheduleOverride has fixed some of it. An error
  /// names the bound that is broken.
  llvm::Error verify(const ContractionProblem &problem, const TargetInfo &target) const;

  /// What is done about the next panel while rows go by one, where steps lie apart: its vectors are
  /// copied, or fetched in `turnsOfPart` turns of rows. `grid` has its split.
  void chooseNextPanel(const ContractionProblem &problem, const TargetInfo &target,
                       const ContractionGrid &grid, int64_t turnsOfPart, bool mayCopy);

  /// All panels of the vectors.
  int64_t panelsOf(const ContractionProblem &problem) const;
  /// Steps of the innermost reduction that a tile sums at a time.
  int64_t tileSteps() const { return strip ? stripSteps : chunk; }
  /// Long sums go in blocks: rounding errors grow with the block, not with the whole.
  bool sumsInBlocks() const { return blockDims > 0 || segment < tileSteps(); }
};

} // namespace weft

#endif
