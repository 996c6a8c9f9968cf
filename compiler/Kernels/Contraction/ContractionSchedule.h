// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the contraction emitter: a part of a schedule attribute. compiler/Scheduling
// chooses them.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONSCHEDULE_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_CONTRACTIONSCHEDULE_H

#include "compiler/Kernels/Contraction/ContractionGrid.h"
#include "compiler/Kernels/Emission/ScheduleFields.h"
#include "compiler/Target/TargetInfo.h"
#include "llvm/Support/Error.h"

namespace weft {

struct KernelFunction;

struct ContractionSchedule {
  /// Steps of the innermost reduction between two prefetches: a cache line of float32.
  static constexpr int64_t stepsPerFetch = 16;

  int64_t rows = 6;         ///< MR: rows of A in a tile
  int64_t groups = 4;       ///< NR / width: B vectors in a tile
  int64_t width = 16;       ///< lanes of a vector
  int64_t narrowWidth = 16; ///< lanes of a vector of tiles whose columns it holds
  int64_t rowTiles = 1;     ///< tiles along the tiled rows; they differ by at most one row
  ContractionGrid::Split split = ContractionGrid::Rows; ///< the loop that the threads divide
  int64_t claim = 0;           ///< least pieces that a thread claims; 0: all of its partition
  int64_t chunk = 1;           ///< KC: iterations of the innermost reduction between spills
  int64_t outerChunks = 0;     ///< 1 if each step of the outermost reduced dim is a chunk
  int64_t panels = 1;          ///< B panels of a block, which stays in L2
  int64_t unroll = 1;          ///< KU: unroll factor of the innermost reduction
  int64_t copiedSteps = 0;     ///< steps of the next B panel packed at a time, or 0
  bool paired = false;         ///< bf16 dot products of pairs of steps, from VNNI panels
  int64_t segment = 1;         ///< innermost steps between additions to the totals in memory
  int64_t turns = 1;           ///< accumulator parts; a segment adds one of them to the totals
  int64_t blockDims = 0;       ///< outer reduced dims that start a new segment with each step
  bool prefetch = false;       ///< prefetch the next rows of A
  int64_t panelPrefetch = 0;   ///< cache lines of the next packed panel or chunk at a prefetch
  int64_t stridedPrefetch = 0; ///< steps of the next strided panel at a prefetch
  int64_t stepsAhead = 0;      ///< prefetch distance within a strided panel, in steps, or 0
  int64_t strip = 0;           ///< rows of a packed A panel, or 0
  int64_t stripLine = 0;       ///< rows of it that share a cache line
  int64_t stripSteps = 0;      ///< steps of a chunk in a packed A panel
  bool matrixUnit = false;     ///< blocks on AMX, with vector tiles for inexact results
  bool tileEpilogue = false;   ///< epilogue on the tile in memory instead of the accumulators

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("rows"), schedule.rows);
    visit(Field::count("groups"), schedule.groups);
    visit(Field::count("lanes"), schedule.width);
    visit(Field::count("narrow_lanes"), schedule.narrowWidth);
    visit(Field::count("row_tiles"), schedule.rowTiles);
    visit(Field::oneOf("split", ContractionGrid::splitNames), schedule.split);
    visit(Field::countOrNone("claim"), schedule.claim);
    visit(Field::countOrNone("chunk"), schedule.chunk);
    visit(Field::flag("outer_chunks"), schedule.outerChunks);
    visit(Field::count("panels"), schedule.panels);
    visit(Field::count("unroll"), schedule.unroll);
    visit(Field::countOrNone("copied_steps"), schedule.copiedSteps);
    visit(Field::flag("paired"), schedule.paired);
    visit(Field::countOrNone("segment"), schedule.segment);
    visit(Field::count("turns"), schedule.turns);
    visit(Field::countOrNone("block_dims"), schedule.blockDims);
    visit(Field::flag("prefetch"), schedule.prefetch);
    visit(Field::countOrNone("panel_prefetch"), schedule.panelPrefetch);
    visit(Field::countOrNone("strided_prefetch"), schedule.stridedPrefetch);
    visit(Field::countOrNone("steps_ahead"), schedule.stepsAhead);
    visit(Field::countOrNone("strip"), schedule.strip);
    visit(Field::countOrNone("strip_line"), schedule.stripLine);
    visit(Field::countOrNone("strip_steps"), schedule.stripSteps);
    visit(Field::flag("matrix_unit"), schedule.matrixUnit);
    visit(Field::flag("tile_epilogue"), schedule.tileEpilogue);
  }

  /// Whether the schedule can be emitted: the error names the field and the violated bound.
  llvm::Error verify(const ContractionProblem &problem, const TargetInfo &target) const;
  /// The part of it that is known before the threads divide the work.
  llvm::Error verifyTile(const ContractionProblem &problem, const TargetInfo &target) const;

  /// Number of B panels.
  int64_t panelsOf(const ContractionProblem &problem) const;
  /// Reduction steps of the innermost dim that a tile accumulates at a time.
  int64_t tileSteps() const { return strip ? stripSteps : chunk; }
  /// Whether long sums are blocked: rounding errors grow with the block, not with the whole sum.
  bool sumsInBlocks() const { return blockDims > 0 || segment < tileSteps(); }
};

/// Contractions with their epilogue. Fails on shapes that have no register tile.
llvm::LogicalResult emitContraction(KernelFunction &kernel);

} // namespace weft

#endif
