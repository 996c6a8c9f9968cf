// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of one nest: a part of a loop nest's schedule. compiler/Scheduling chooses them. Loops
// are numbered as in `loops`; each has one role.
#ifndef WEFT_COMPILER_KERNELS_NEST_NESTSCHEDULE_H
#define WEFT_COMPILER_KERNELS_NEST_NESTSCHEDULE_H

#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct NestSchedule {
  using Numbers = llvm::SmallVector<int64_t>;
  /// What is transposed in registers, if memory is not contiguous along the lanes: the results, or
  /// those reads alone.
  enum Transpose { NoTranspose, Results, Reads };
  /// Scans, if there are any: row by row, or a row in each lane, of which squares are transposed in
  /// registers if memory is contiguous along the rows.
  enum Scans { NoScans, Rows, Lanes, Squares };

  Numbers targets; ///< what the nest stores, of storeTargets; the first leads
  Numbers loops;   ///< extents: the dims of the leader other than 1, each split or not, or one loop
  Numbers grid;    ///< loops that number the cells, which threads divide
  Numbers cell;    ///< of the grid, but iterated within a cell
  Numbers rows;    ///< loops after the reductions; without reductions, outside the lanes
  int64_t width = 1;  ///< lanes of a vector
  int64_t groups = 4; ///< most vectors of a point
  int64_t lane = -1;  ///< loop of the lanes: one of `rows`, or with no other role; -1: none
  int64_t block = 1;  ///< values of the lane loop in a cell
  Transpose transpose = NoTranspose;
  int64_t load = -1; ///< loop along which transposed memory is contiguous, or -1
  Scans scans = NoScans;
  Numbers reducedLanes;   ///< of each reduction: the reduced dim that has the lanes, or -1
  Numbers cachedOperands; ///< of each reduction: the operand that is kept in scratch, or -1
  int64_t unroll = 16;    ///< most steps of a reduction that is unrolled
  int64_t claim = 1;      ///< least cells that a thread claims

  /// Whether each lane of a cell computes its own reductions: the lanes are no row.
  bool isVertical() const { return lane >= 0 && !llvm::is_contained(rows, lane); }
  bool scansInLanes() const { return scans == Lanes || scans == Squares; }

  template <typename Self, typename Visit> static void visitFields(Self &schedule, Visit &&visit) {
    visit("targets", schedule.targets);
    visit("loops", schedule.loops);
    visit("grid", schedule.grid);
    visit("cell", schedule.cell);
    visit("rows", schedule.rows);
    visit("lanes", schedule.width);
    visit("groups", schedule.groups);
    visit("lane", schedule.lane);
    visit("block", schedule.block);
    visit("transpose", schedule.transpose);
    visit("load", schedule.load);
    visit("scans", schedule.scans);
    visit("reduced_lanes", schedule.reducedLanes);
    visit("cached_operands", schedule.cachedOperands);
    visit("unroll", schedule.unroll);
    visit("claim", schedule.claim);
  }
};

/// The names of the fields' values in the attribute.
mlir::Attribute fieldOf(mlir::Builder &builder, NestSchedule::Transpose transpose);
void readField(mlir::Attribute field, NestSchedule::Transpose &transpose);
mlir::Attribute fieldOf(mlir::Builder &builder, NestSchedule::Scans scans);
void readField(mlir::Attribute field, NestSchedule::Scans &scans);

} // namespace weft

#endif
