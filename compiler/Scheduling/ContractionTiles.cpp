// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows and groups fill the registers: accumulators, one row of B vectors, one broadcast.
#include "compiler/Scheduling/ContractionTiles.h"
#include "compiler/Target/CostModel.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace weft;

/// Rows a multiple of so many bytes apart alias in L1: they compete for the ways of one set.
static constexpr int64_t aliasBytes = 4096;

double weft::reducedSteps(const ContractionProblem &problem) {
  double steps = 1;
  for (int64_t extent : problem.reduced)
    steps *= double(extent);
  return steps;
}

bool ContractionTiles::isAliased() const {
  return problem.rowCount > 1 && problem.rowStrideBytes % aliasBytes == 0;
}

/// Of a tile with `groups` vectors.
int64_t ContractionTiles::mostRows(int64_t groups) const {
  // In convolutions of one channel each, the windows of neighbouring rows overlap: what they share
  // has to stay in registers beside the sums. B needs some of the ways of an aliased set, too.
  constexpr int64_t mostRows = 14, ofRegisters = 2;
  int64_t most = problem.lanewise
                     ? std::max<int64_t>(target.vectorRegisters / ofRegisters / groups, 1)
                     : (target.vectorRegisters - 1 - groups) / groups;
  int64_t mostAliased = std::clamp<int64_t>(target.l1Bytes / aliasBytes - 1, 1, 8);
  return std::min({most, isAliased() ? mostAliased : mostRows, problem.rowCount});
}

double ContractionTiles::ofMultiplyAdd(int64_t rows, int64_t groups) const {
  auto grid = ContractionGrid::of(problem, rows, groups, width, target.team());
  int64_t needed = llvm::divideCeil(problem.laneCount, width);
  BroadcastTiles tiles;
  tiles.rows = double(grid.rowCount) / double(grid.rowTiles);
  tiles.groups = groups;
  tiles.tallest = mostRows(groups);
  tiles.allRows = grid.rowCount;
  tiles.lanesUsed = double(needed) / (llvm::divideCeil(needed, groups) * groups);
  tiles.lanewise = problem.lanewise;
  tiles.aliased = isAliased();
  tiles.isUneven = grid.isUneven();
  return tiles.ofMultiplyAdd();
}

double ContractionTiles::cycles(int64_t rows, int64_t groups) const {
  double vectors = double(problem.batches * problem.rowCount * problem.outerRows) *
                   double(problem.outerPanels) * double(llvm::divideCeil(problem.laneCount, width));
  return cyclesOf(vectors * reducedSteps(problem) * ofMultiplyAdd(rows, groups));
}

void ContractionTiles::choose(ContractionSchedule &schedule, ComparedSchedules *compared) const {
  int64_t needed = llvm::divideCeil(problem.laneCount, width);
  double bestCost = 1e30;
  for (int64_t groups = 1; groups <= std::min<int64_t>(needed, 4); ++groups) {
    int64_t most = mostRows(groups);
    for (int64_t rows = most; rows >= std::max<int64_t>(1, most / 2); --rows) {
      double cost = ofMultiplyAdd(rows, groups);
      if (cost < bestCost) {
        bestCost = cost;
        schedule.groups = groups;
        schedule.rows = rows;
      }
      if (compared)
        compared->add(fields(rows, groups), cycles(rows, groups));
    }
  }
}
