// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the Winograd emitter. compiler/Scheduling chooses them.
#ifndef WEFT_COMPILER_KERNELS_CONTRACTION_WINOGRADSCHEDULE_H
#define WEFT_COMPILER_KERNELS_CONTRACTION_WINOGRADSCHEDULE_H

#include "compiler/Graph/Graph.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "compiler/Kernels/Emission/ScheduleFields.h"
#include "llvm/Support/MathExtras.h"

namespace weft {

struct KernelFunction;

/// A convolution F(2x2, 3x3) as its schedule sees it.
struct WinogradProblem {
  int64_t channels = 1, outputs = 1;
  int64_t tileRows = 1, tileColumns = 1; ///< of one image
  int64_t tiles = 1;                     ///< of all images

  static WinogradProblem of(WinogradConvOp op) {
    llvm::ArrayRef<int64_t> in = op.getInput().getType().getShape();
    llvm::ArrayRef<int64_t> out = op.getType().getShape();
    WinogradProblem problem{in[1], out[1], int64_t(llvm::divideCeil(out[2], 2)),
                            int64_t(llvm::divideCeil(out[3], 2))};
    problem.tiles = out[0] * problem.tileRows * problem.tileColumns;
    return problem;
  }
  /// Elements between the transformed tiles: rows are padded by one cache line, so that those of a
  /// register tile do not alias in L1.
  int64_t rowStride() const { return channels + lineBytes / int64_t(sizeof(float)); }
};

struct WinogradSchedule {
  int64_t rows = 1;          ///< of a register tile
  int64_t groups = 2;        ///< vectors of a register tile
  int64_t width = 16;        ///< lanes of a vector
  int64_t groupTiles = 1;    ///< tiles whose intermediates stay in L2
  int64_t summands = 1;      ///< channels accumulated in registers
  int64_t steps = 8;         ///< channels between two prefetches of the next weights
  int64_t unroll = 4;        ///< channels, a part of `steps`
  int64_t linesPerFetch = 1; ///< cache lines of them at a time
  bool splitsTiles = false;  ///< the threads divide groups of tiles, not the output panels

  int64_t lanes() const { return groups * width; }

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    using Field = ScheduleField;
    visit(Field::count("rows"), schedule.rows);
    visit(Field::count("groups"), schedule.groups);
    visit(Field::count("lanes"), schedule.width);
    visit(Field::count("tiles"), schedule.groupTiles);
    visit(Field::count("summands"), schedule.summands);
    visit(Field::count("steps"), schedule.steps);
    visit(Field::count("unroll"), schedule.unroll);
    visit(Field::count("panel_prefetch"), schedule.linesPerFetch);
    visit(Field::flag("split_tiles"), schedule.splitsTiles);
  }
};

/// One weft.winograd_conv with its epilogue.
llvm::LogicalResult emitWinograd(KernelFunction &kernel);

} // namespace weft

#endif
