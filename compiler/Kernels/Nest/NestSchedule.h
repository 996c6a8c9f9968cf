// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of one nest: a part of a loop nest's schedule. compiler/Scheduling chooses them. Loops
// are numbered as in `loops`; each has one role.
#ifndef WEFT_COMPILER_KERNELS_NEST_NESTSCHEDULE_H
#define WEFT_COMPILER_KERNELS_NEST_NESTSCHEDULE_H

#include "compiler/Kernels/Emission/ScheduleFields.h"

namespace weft {

struct KernelFunction;

struct NestSchedule {
  using Numbers = llvm::SmallVector<int64_t>;
  /// What is transposed in registers, if memory is not contiguous along the lanes: the results, or
  /// those reads alone.
  enum Transpose { NoTranspose, Results, Reads };
  static constexpr llvm::StringLiteral transposeNames[] = {"none", "results", "reads"};
  /// Scans, if there are any: row by row, or a row in each lane, of which squares are transposed in
  /// registers if memory is contiguous along the rows.
  enum Scans { NoScans, Rows, Lanes, Squares };
  static constexpr llvm::StringLiteral scanNames[] = {"none", "rows", "lanes", "squares"};

  Numbers targets;   ///< what the nest stores, of storeTargets; the first leads
  Numbers interiors; ///< of these, padded roots of which the nest stores the interior alone
  Numbers loops; ///< extents: the dims of the leader other than 1, each split or not, or one loop
  Numbers grid;  ///< loops that number the cells, which threads divide
  Numbers cell;  ///< of the grid, but iterated within a cell
  Numbers rows;  ///< loops after the reductions; without reductions, outside the lanes
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
    using Field = ScheduleField;
    visit(Field::list(Field::countOrNone("targets")), schedule.targets);
    visit(Field::list(Field::countOrNone("interiors")), schedule.interiors);
    visit(Field::list(Field::count("loops")), schedule.loops);
    visit(Field::list(Field::countOrNone("grid")), schedule.grid);
    visit(Field::list(Field::countOrNone("cell")), schedule.cell);
    visit(Field::list(Field::countOrNone("rows")), schedule.rows);
    visit(Field::count("lanes"), schedule.width);
    visit(Field::count("groups"), schedule.groups);
    visit(Field::numberOrNone("lane"), schedule.lane);
    visit(Field::count("block"), schedule.block);
    visit(Field::oneOf("transpose", transposeNames), schedule.transpose);
    visit(Field::numberOrNone("load"), schedule.load);
    visit(Field::oneOf("scans", scanNames), schedule.scans);
    visit(Field::list(Field::numberOrNone("reduced_lanes")), schedule.reducedLanes);
    visit(Field::list(Field::numberOrNone("cached_operands")), schedule.cachedOperands);
    visit(Field::countOrNone("unroll"), schedule.unroll);
    visit(Field::count("claim"), schedule.claim);
  }
};

/// Anything that ElementEmitter can follow.
llvm::LogicalResult emitLoopNest(KernelFunction &kernel);

} // namespace weft

#endif
