// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plain numbers that steer the contraction emitter, and how they are chosen: a
// function of shapes and the machine alone.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTIONSCHEDULE_H
#define WEFT_COMPILER_KERNELS_CONTRACTIONSCHEDULE_H

#include "compiler/Kernels/ScheduleOverride.h"
#include "compiler/Target/TargetInfo.h"
#include "llvm/ADT/SmallVector.h"

namespace weft {

/// What a contraction looks like to its schedule. Vectors are taken from one operand along
/// its lane dim; the other operand is broadcast, row by row.
struct ContractionProblem {
  unsigned elementBits = 32;
  bool pairs = false;                 ///< of bf16, whose neighbouring steps may be summed at once
  bool stridedPairs = false;          ///< of bf16, with rows side by side and steps apart
  int64_t rowCount = 1;               ///< extent of the dim along which tile rows run
  int64_t outerRows = 1;              ///< other free iterations of the broadcast operand
  int64_t rowStrideBytes = 0;         ///< between rows of the broadcast operand
  int64_t laneCount = 1;              ///< extent of the lane dim
  int64_t outerPanels = 1;            ///< other free iterations of the vector operand
  llvm::SmallVector<int64_t> reduced; ///< extents, outermost first
  int64_t scalarBytes = 0;            ///< size of the broadcast operand
  bool scalarsContiguous = false;     ///< along its only reduced dim, with no other free dim
  bool panelsFetched = false;         ///< panels of vectors can be fetched one ahead
  bool lanewise = false;              ///< lanes do not all share their scalars
  bool scalarsStrided = false;        ///< rows lie side by side, steps of a sum a page apart
  int64_t matrixParts =
      0; ///< bfloat16 parts of an operand on the matrix unit; 0 where it does not fit
  bool canSpill = false;       ///< partial sums may wait in the result between chunks
  bool transcendental = false; ///< the epilogue holds functions of many instructions
};

struct ContractionSchedule {
  int64_t rows = 6;        ///< MR: scalars of the broadcast operand held by a tile
  int64_t groups = 4;      ///< NR / lanes: vectors of the other operand
  int64_t width = 16;      ///< lanes of one vector
  int64_t chunk = 1;       ///< KC: iterations of the innermost reduction between spills
  int64_t outerChunks = 0; ///< 1 where the outermost reduced dim is divided as well, by steps
  int64_t panels = 1;      ///< panels of vectors kept in L2 while the rows go by
  int64_t unroll = 1;      ///< KU
  bool paired = false;     ///< steps of bf16 two at a time, from interleaved panels
  int64_t summands = 1;    ///< innermost products summed in registers before they join partial sums
  int64_t blockDims = 0;   ///< outer reduced dims that start a new block of such sums
  bool prefetch = false;   ///< the next rows while these compute
  int64_t panelPrefetch = 0; ///< lines of the next panel every 16 steps
  int64_t strip = 0;         ///< rows whose scalars are copied side by side first, or 0
  bool matrixUnit = false;   ///< blocks on the matrix unit, and tiles for what it does not take
  bool tileEpilogue = false; ///< epilogue on the stored tile instead of the accumulators

  /// What `given` holds is taken over unchecked; the rest is chosen to go with it.
  static ContractionSchedule choose(const ContractionProblem &problem, const TargetInfo &target,
                                    const ScheduleOverride &given = {});

  /// Long sums go in blocks: rounding errors grow with the block, not with the whole.
  bool sumsInBlocks() const { return blockDims > 0 || summands < chunk; }
};

} // namespace weft

#endif
