// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/ThreadTeam.h"
#include "runtime/Errors.h"
#include <array>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace weft::rt;

namespace {

/// Each round, every thread adds to its own cell and then checks that all have.
struct Rounds {
  ThreadTeam &team;
  std::array<std::atomic<int>, 4> cells{};
  std::atomic<int> wrong{0};
  std::atomic<int> threads{0};

  static void run(void *data, int32_t thread, int32_t threads) {
    auto &self = *static_cast<Rounds *>(data);
    self.threads = threads;
    for (int round = 1; round <= 2000; ++round) {
      ++self.cells[thread];
      if (threads > 1)
        self.team.barrier();
      for (int32_t other = 0; other < threads; ++other)
        self.wrong += self.cells[other] != round;
      if (threads > 1)
        self.team.barrier();
    }
  }
};

TEST(ThreadTeam, barrierHoldsEveryThread) {
  for (int32_t threads : {1, 2, 4}) {
    ThreadTeam team;
    Rounds rounds{team};
    team.run(threads, Rounds::run, &rounds);
    EXPECT_EQ(rounds.threads, threads);
    EXPECT_EQ(rounds.wrong, 0);
  }
}

TEST(ThreadTeam, manyShortJobs) {
  ThreadTeam team;
  std::atomic<int> count{0};
  for (int i = 0; i < 5000; ++i)
    team.run(
        2, [](void *data, int32_t, int32_t) { ++*static_cast<std::atomic<int> *>(data); }, &count);
  EXPECT_EQ(count, 10000);
}

TEST(ThreadTeam, secondCallerRunsAlone) {
  ThreadTeam team;
  struct Nested {
    ThreadTeam &team;
    int32_t seen = 0;
  } nested{team};
  team.run(
      2,
      [](void *data, int32_t thread, int32_t) {
        auto &nested = *static_cast<Nested *>(data);
        if (thread == 0)
          nested.team.run(
              2, [](void *data, int32_t, int32_t n) { *static_cast<int32_t *>(data) = n; },
              &nested.seen);
      },
      &nested);
  EXPECT_EQ(nested.seen, 1);
}

TEST(ThreadTeam, worksInAForkedChild) {
  auto count = [] {
    std::atomic<int> count{0};
    ThreadTeam::process().run(
        2, [](void *data, int32_t, int32_t) { ++*static_cast<std::atomic<int> *>(data); }, &count);
    return count.load();
  };
  EXPECT_EQ(count(), 2);
  pid_t child = fork();
  if (child == 0)
    _exit(count() == 2 ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(count(), 2);
}

/// In a process of its own: the setting is read once.
TEST(ThreadTeamDeathTest, refusesSenselessSettings) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto check = [] {
    setenv("WEFT_THREADS", "abc", 1);
    try {
      getNumThreads();
    } catch (const ConfigError &error) {
      std::fputs(error.what(), stderr);
    }
    setenv("WEFT_THREADS", "3", 1);
    _exit(getNumThreads());
  };
  EXPECT_EXIT(check(), ::testing::ExitedWithCode(3),
              "WEFT_THREADS: expected a positive integer, found \"abc\"");
  EXPECT_THROW(setNumThreads(0), ConfigError);
}

} // namespace
