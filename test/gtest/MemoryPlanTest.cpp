// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Lowering/Entries/ThreadLocalPlacement.h"
#include <gtest/gtest.h>
#include <random>

using namespace weft;

static void expectDisjoint(llvm::ArrayRef<Lifetime> buffers, const MemoryPlan &plan) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Lifetime &a = buffers[i];
    EXPECT_EQ(plan.offsets[i] % arenaAlignment, 0);
    EXPECT_LE(plan.offsets[i] + a.bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const Lifetime &b = buffers[j];
      bool together = a.first <= b.last && b.first <= a.last;
      bool apart = plan.offsets[i] + a.bytes <= plan.offsets[j] ||
                   plan.offsets[j] + b.bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

TEST(MemoryPlan, Nothing) {
  MemoryPlan plan = planMemory({});
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(livenessBound({}), 0);
}

/// `unit` bytes per token row; the order of a GPT-2 layer, where the residual survives both
/// halves. Every greedy order puts the two widest buffers at the same place, which wastes a
/// sixth of the arena.
TEST(MemoryPlan, LayersOfADecoder) {
  constexpr int64_t unit = 64 * 1024;
  llvm::SmallVector<Lifetime> buffers;
  for (int64_t layer = 0; layer < 12; ++layer) {
    int64_t t = 7 * layer;
    buffers.append({{unit, t, t + 4},         // residual
                    {unit, t, t + 1},         // normalised
                    {3 * unit, t + 1, t + 2}, // q, k, v
                    {unit, t + 2, t + 3},     // attention
                    {unit, t + 3, t + 4},     // projected
                    {unit, t + 4, t + 6},     // residual
                    {unit, t + 4, t + 5},     // normalised
                    {4 * unit, t + 5, t + 6}, // widened
                    {unit, t + 6, t + 11}});  // the next residual
    buffers.erase(buffers.end() - 9);
  }
  MemoryPlan plan = planMemory(buffers);
  expectDisjoint(buffers, plan);
  EXPECT_EQ(plan.bytes, livenessBound(buffers));
}

TEST(MemoryPlan, AnyLifetimes) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    llvm::SmallVector<Lifetime> buffers;
    for (int i = 0; i < 40; ++i) {
      int64_t first = random() % 30;
      buffers.push_back({int64_t(random() % 5000), first, first + int64_t(random() % 6)});
    }
    MemoryPlan plan = planMemory(buffers);
    expectDisjoint(buffers, plan);
    EXPECT_GE(plan.bytes, livenessBound(buffers));
    MemoryPlan moved = plan;
    placeThreadLocally(buffers, moved, /*threads=*/2);
    expectDisjoint(buffers, moved);
    EXPECT_EQ(moved.bytes, plan.bytes);
  }
}

/// Where the wide buffer was, each thread has one half: so has each of the narrow one that follows,
/// if their middles lie together.
TEST(ThreadLocalPlacement, OfWidthsThatFollowEachOther) {
  constexpr int64_t unit = 64 * 1024;
  llvm::SmallVector<Lifetime> buffers{{unit, 0, 9}, {4 * unit, 1, 2}, {unit, 3, 4}};
  MemoryPlan plan{{4 * unit, 0, 0}, 5 * unit};
  placeThreadLocally(buffers, plan, /*threads=*/2);
  expectDisjoint(buffers, plan);
  EXPECT_EQ(plan.offsets[2] + unit / 2, plan.offsets[1] + 2 * unit);
}

TEST(ThreadLocalPlacement, OfFourThreads) {
  constexpr int64_t unit = 64 * 1024;
  // Three quarters of the first buffer, as each thread has them, are where the second has its own.
  llvm::SmallVector<Lifetime> buffers{{4 * unit, 0, 1}, {4 * unit, 2, 3}};
  MemoryPlan plan{{0, unit}, 8 * unit};
  placeThreadLocally(buffers, plan, /*threads=*/4);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
}

/// The last buffer is in the way of the second: the first goes where the second is.
TEST(ThreadLocalPlacement, BesideWhatIsThere) {
  constexpr int64_t unit = 64 * 1024;
  llvm::SmallVector<Lifetime> buffers{{4 * unit, 0, 1}, {4 * unit, 2, 4}, {unit, 3, 4}};
  MemoryPlan plan{{0, unit, 0}, 6 * unit};
  placeThreadLocally(buffers, plan, /*threads=*/2);
  expectDisjoint(buffers, plan);
  EXPECT_EQ(plan.offsets[0], unit);
  EXPECT_EQ(plan.offsets[1], unit);
}
