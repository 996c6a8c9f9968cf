// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How contractions are divided among teams of any size.
#include "compiler/Scheduling/ContractionChoice.h"
#include "compiler/Scheduling/DotChoice.h"
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
  problem.flops = 2 * batches * rows * lanes * depth;
  problem.rowsOutermost = problem.scalarsContiguous = problem.canSpill = true;
  return problem;
}

ContractionGrid gridOf(const ContractionProblem &problem, const TargetInfo &target) {
  return ContractionGrid::of(problem, llvm::cantFail(chooseContraction(problem, target)),
                             target.team());
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
    problem.vectorStrideBytes = round % 2 * 4096;
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
  problem.vectorStrideBytes = 3072 * 4;
  problem.coldVectors = true;
  problem.rowsOutermost = false;
  for (int64_t threads : {2, 4, 8}) {
    ContractionGrid grid = gridOf(problem, machineOf(threads));
    EXPECT_EQ(grid.split, Split::Panels);
    EXPECT_GE(grid.balance(Split::Panels), 0.9) << threads;
  }
}

/// Partitions as KernelFunction::share makes them.
TEST(ContractionGrid, NoThreadIdlesWhileAnotherHasTwoPieces) {
  std::mt19937 random(3);
  for (int64_t threads = 1; threads <= 64; ++threads)
    for (int round = 0; round < 40; ++round) {
      ContractionProblem problem =
          problemOf(1, random() % 900 + 1, random() % 2000 + 1, random() % 900 + 1);
      int64_t pieces = gridOf(problem, machineOf(threads)).pieces(), most = 0, least = pieces;
      int64_t all = 0;
      for (int64_t thread = 0; thread < threads; ++thread) {
        int64_t share = pieces * (thread + 1) / threads - pieces * thread / threads;
        most = std::max(most, share);
        least = std::min(least, share);
        all += share;
      }
      EXPECT_EQ(all, pieces);
      EXPECT_TRUE(least > 0 || most < 2) << pieces << " pieces on " << threads << " threads";
    }
}

/// Tile t begins at row t * rowCount / rowTiles; packed A panels have whole tiles but the last.
TEST(ContractionGrid, TilesCoverEveryRowOnce) {
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    TargetInfo target = machineOf(int64_t(random() % 64) + 1, int64_t(random() % 4 + 1) << 19);
    ContractionProblem problem =
        problemOf(1, random() % 900 + 1, random() % 2000 + 1, random() % 900 + 1);
    problem.scalarStrideBytes = round % 3 == 0 ? 4096 : 0;
    auto schedule = llvm::cantFail(chooseContraction(problem, target));
    int64_t covered = 0;
    for (int64_t tile = 0; tile < schedule.rowTiles; ++tile) {
      int64_t first =
          schedule.strip ? tile * schedule.rows : tile * problem.rowCount / schedule.rowTiles;
      int64_t end = schedule.strip ? std::min(first + schedule.rows, problem.rowCount)
                                   : (tile + 1) * problem.rowCount / schedule.rowTiles;
      EXPECT_EQ(first, covered);
      EXPECT_GT(end, first);
      EXPECT_LE(end - first, schedule.rows);
      covered = end;
    }
    EXPECT_EQ(covered, problem.rowCount);
    EXPECT_FALSE(llvm::errorToBool(schedule.verify(problem, target)));
  }
}

/// What a thread claims is worth the claim, or is all that there is.
TEST(ContractionSchedule, ClaimsAreWorthTheirCost) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    TargetInfo target = machineOf(int64_t(random() % 64) + 1);
    ContractionProblem problem =
        problemOf(1, random() % 900 + 1, random() % 2000 + 1, random() % 900 + 1);
    auto schedule = llvm::cantFail(chooseContraction(problem, target));
    if (schedule.claim == 0)
      continue;
    int64_t pieces = ContractionGrid::of(problem, schedule, target.team()).pieces();
    double flops = double(problem.flops) * double(schedule.claim) / double(pieces);
    EXPECT_GE(flops + 1, std::min(2e6, double(problem.flops)));
  }
}

/// Teams of any size are busy, and chunks of a long sum follow the cache.
TEST(ContractionSchedule, DiffersBetweenMachines) {
  ContractionProblem problem = problemOf(1, 512, 4096, 3072);
  auto ofTwo = llvm::cantFail(chooseContraction(problem, machineOf(2)));
  auto ofMany = llvm::cantFail(chooseContraction(problem, machineOf(64)));
  EXPECT_GE(ContractionGrid::of(problem, ofMany, 64).balance(ofMany.split), 0.9);
  EXPECT_GE(ContractionGrid::of(problem, ofTwo, 2).balance(ofTwo.split), 0.9);
  auto small = llvm::cantFail(chooseContraction(problem, machineOf(2, 256 << 10)));
  auto large = llvm::cantFail(chooseContraction(problem, machineOf(2, 4 << 20)));
  EXPECT_LT(small.chunk, large.chunk);
}

TEST(SkinnyMatmulSchedule, BlocksForTheTeam) {
  DotProblem problem;
  problem.rows = 17;
  problem.columns = problem.depth = 768;
  problem.flops = 2 * 17 * 768 * 768;
  for (int64_t threads : {2, 4, 8, 16, 32}) {
    auto schedule = chooseSkinnyMatmul(problem, machineOf(threads));
    ASSERT_TRUE(schedule);
    int64_t blocks = llvm::divideCeil(problem.columns, schedule->block);
    EXPECT_GE(double(blocks) / double(llvm::alignTo(blocks, threads)), 0.75) << threads;
  }
}

} // namespace
