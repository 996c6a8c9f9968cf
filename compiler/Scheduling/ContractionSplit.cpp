// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Scheduling/ContractionSplit.h"
#include "compiler/Target/CostModel.h"
#include <algorithm>

using namespace weft;

using Split = ContractionGrid::Split;

/// Least parallel efficiency at which a split counts as balanced.
static constexpr double balanced = 0.95;

/// How many row tiles to add so that they divide evenly among the threads, in the least time; 0 if
/// none help.
static int64_t tilesToBeEven(const ContractionGrid &grid) {
  auto time = [&](int64_t more) {
    return DividedRows{grid.rowCount, grid.rowTiles + more, grid.outerRows, grid.threads}
        .ofThread();
  };
  int64_t best = 0;
  for (int64_t more = 1; more < grid.threads && grid.rowTiles + more <= grid.rowCount; ++more)
    if ((grid.rowTiles + more) * grid.outerRows % grid.threads == 0 && time(more) <= time(best))
      best = more;
  return best;
}

/// Whether each thread keeps its own rows, even if every thread then reads all of B.
static bool keepsRows(const ContractionGrid &grid, const ContractionProblem &problem,
                      const ContractionSchedule &schedule, int64_t l2Bytes) {
  // If B fits L2, it is cheap for each thread to read all of it, and tile heights may be evened
  // out.
  bool isNear = problem.vectorBytes <= l2Bytes;
  int64_t enoughRows = (isNear ? 8 : 48) * grid.threads;
  bool isEven =
      grid.balance(Split::Rows) >= balanced || (isNear && tilesToBeEven(grid) && !schedule.strip);
  return problem.rowsOutermost && grid.batches == 1 &&
         grid.rowCount * grid.outerRows >= enoughRows && isEven;
}

/// Whether every thread gets at least one block of `ofBlock` equal panels of a single batch.
static bool hasBlocks(const ContractionGrid &grid, int64_t ofBlock) {
  bool panelsAreAlike = grid.vectors % grid.groups == 0 && grid.paddedVectors == 0;
  return grid.batches == 1 && panelsAreAlike && grid.panels() >= grid.threads * ofBlock &&
         grid.panels() % ofBlock == 0;
}

/// Takes the first loop that is well balanced over the threads.
static void splitEvenly(ContractionGrid &grid) {
  // Prefer Rows: a contraction without batch dims has one batch, and no batch loop to parallelize.
  for (Split choice : {Split::Batches, Split::Rows, Split::Panels})
    if (grid.balance(choice) > grid.balance(grid.split) + 0.02)
      grid.split = choice;
}

/// If the split is unbalanced, adds row tiles, which may then have fewer rows.
static void evenRows(ContractionGrid &grid) {
  constexpr double worthTiles = 0.97;
  if (grid.balance(grid.split) >= worthTiles)
    return;
  if (int64_t more = tilesToBeEven(grid)) {
    grid.split = Split::Rows;
    grid.rowTiles += more;
    grid.rowPieces = grid.rows();
  }
}

void weft::chooseSplit(ContractionGrid &grid, const ContractionProblem &problem,
                       const ContractionSchedule &schedule, int64_t l2Bytes) {
  // Each thread finds its data in its own caches if all kernels partition the outermost dim of
  // tensors.
  bool fetchesRows = schedule.prefetch || schedule.strip;
  if (!problem.rowsOutermost && fetchesRows && !schedule.matrixUnit &&
      hasBlocks(grid, schedule.panels)) {
    grid.split = Split::Blocks;
    grid.panelsOfBlock = schedule.panels;
    return;
  }
  bool keepsOwnRows = keepsRows(grid, problem, schedule, l2Bytes);
  // If B is larger than A, each panel is read by one thread only, unless there are many rows.
  bool longerVectors =
      problem.vectorBytes > problem.scalarBytes && grid.balance(Split::Panels) >= balanced;
  bool dividesPanels = schedule.matrixUnit || (longerVectors && !keepsOwnRows);
  if (dividesPanels && grid.batches == 1 && grid.panels() >= grid.threads * schedule.panels) {
    grid.split = Split::Panels;
    return;
  }
  grid.split = Split::Rows;
  if (!keepsOwnRows)
    splitEvenly(grid);
  if (!schedule.strip)
    evenRows(grid);
}
