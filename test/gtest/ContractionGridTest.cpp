// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How contractions are divided among teams of any size.
#include "compiler/Kernels/Contraction/ContractionGrid.h"
#include "compiler/Kernels/Contraction/ContractionSchedule.h"
#include "compiler/Kernels/DotProduct/SkinnyMatmulSchedule.h"
#include "llvm/Support/MathExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace weft;

namespace {

using Split = ContractionGrid::Split;

TargetInfo machineOf(int64_t threads, int64_t l2Bytes = 1 << 20) {
  TargetInfo target;
  target.vectorBytes = 64;
  target.vectorRegisters = 32;
  target.threads = threads;
  target.l2Bytes = l2Bytes;
  return target;
}

/// `rows` x `lanes`, sums of `depth`, of each batch, in float32.
ContractionProblem problemOf(int64_t batches, int64_t rows, int64_t lanes, int64_t depth) {
  ContractionProblem problem;
  problem.batches = batches;
  problem.rowCount = rows;
  problem.laneCount = problem.lastLanes = lanes;
  problem.reduced = {depth};
  problem.rowStrideBytes = depth * 4;
  problem.scalarBytes = rows * depth * 4;
  problem.vectorBytes = lanes * depth * 4;
  problem.rowsOutermost = problem.scalarsContiguous = problem.canSpill = true;
  return problem;
}

ContractionGrid gridOf(const ContractionProblem &problem, const TargetInfo &target) {
  auto schedule = ContractionSchedule::choose(problem, target);
  auto grid =
      ContractionGrid::of(problem, schedule.rows, schedule.groups, schedule.width, target.team());
  grid.chooseSplit(problem, schedule, target.l2Bytes);
  return grid;
}

TEST(ContractionGrid, BalanceIsTheBusyShareOfTheTime) {
  ContractionGrid grid;
  for (int64_t threads = 1; threads <= 64; ++threads)
    for (int64_t pieces : {1, 2, 3, 7, 64, 100}) {
      grid.threads = threads;
      grid.batches = pieces;
      int64_t longest = 0, all = 0;
      for (int64_t thread = 0; thread < threads; ++thread) {
        int64_t share = pieces * (thread + 1) / threads - pieces * thread / threads;
        longest = std::max(longest, share);
        all += share;
      }
      EXPECT_EQ(all, pieces);
      EXPECT_DOUBLE_EQ(grid.balance(Split::Batches), double(pieces) / double(threads * longest));
    }
}

/// No split leaves threads idle that another one would keep busy.
TEST(ContractionGrid, AnyTeamDividesAnyShape) {
  std::mt19937 random(1);
  auto any = [&](int64_t most) { return int64_t(random() % most) + 1; };
  for (int round = 0; round < 3000; ++round) {
    TargetInfo target = machineOf(any(64), any(2) << 20);
    ContractionProblem problem =
        problemOf(any(3) == 1 ? any(40) : 1, any(700), any(1500), any(900));
    problem.rowsOutermost = any(2) == 1;
    ContractionGrid grid = gridOf(problem, target);
    EXPECT_GE(grid.rows() * grid.tallest(), problem.rowCount);
    EXPECT_LE(grid.rowTiles, problem.rowCount);
    double chosen = grid.balance(grid.split);
    for (Split other : {Split::Batches, Split::Rows, Split::Panels})
      EXPECT_GE(chosen + 0.051, grid.balance(other))
          << target.threads << " threads, " << problem.batches << " x " << problem.rowCount << " x "
          << problem.laneCount << ": " << int(grid.split) << " instead of " << int(other);
  }
}

TEST(ContractionGrid, TwoBatchesKeepTwoThreadsBusyAndNoMore) {
  ContractionProblem problem = problemOf(2, 256, 256, 64);
  EXPECT_EQ(gridOf(problem, machineOf(2)).balance(Split::Batches), 1.0);
  ContractionGrid grid = gridOf(problem, machineOf(8));
  EXPECT_NE(grid.split, Split::Batches);
  EXPECT_GE(grid.balance(grid.split), 0.9);
}

TEST(ContractionGrid, OneThreadHasTheTilesOfTwo) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    ContractionProblem problem = problemOf(1, random() % 300 + 1, random() % 900 + 1, 512);
    problem.vectorsStrided = round % 2;
    ContractionGrid one = gridOf(problem, machineOf(1)), two = gridOf(problem, machineOf(2));
    EXPECT_EQ(one.rowTiles, two.rowTiles);
    EXPECT_EQ(one.groups, two.groups);
  }
}

TEST(ContractionGrid, RowsBecomeEvenForTheTeam) {
  ContractionProblem problem = problemOf(1, 90, 64, 64);
  for (int64_t threads : {2, 3, 4, 6}) {
    ContractionGrid grid = gridOf(problem, machineOf(threads));
    ASSERT_EQ(grid.split, Split::Rows);
    EXPECT_EQ(grid.rows() % threads, 0) << threads;
  }
}

TEST(ContractionGrid, WeightsOfFewRowsGoToAllThreads) {
  ContractionProblem problem = problemOf(1, 4, 3072, 768);
  problem.vectorsStrided = problem.coldVectors = true;
  problem.rowsOutermost = false;
  for (int64_t threads : {2, 4, 8}) {
    ContractionGrid grid = gridOf(problem, machineOf(threads));
    EXPECT_EQ(grid.split, Split::Panels);
    EXPECT_GE(grid.balance(Split::Panels), 0.9) << threads;
  }
}

TEST(SkinnyMatmulSchedule, BlocksForTheTeam) {
  SkinnyMatmulProblem problem{/*rows=*/17, /*columns=*/768, /*depth=*/768};
  for (int64_t threads : {2, 4, 8, 16, 32}) {
    auto schedule = SkinnyMatmulSchedule::choose(problem, machineOf(threads));
    int64_t blocks = llvm::divideCeil(problem.columns, schedule.block);
    EXPECT_GE(double(blocks) / double(llvm::alignTo(blocks, threads)), 0.75) << threads;
  }
}

} // namespace
