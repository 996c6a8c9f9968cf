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

/// An OpenMP library whose regions start threads of their own.
namespace plain {
thread_local int number = 0, count = 1;
int regions = 0, most = 2;

void parallel(void (*body)(void *), void *data, unsigned threads, unsigned) {
  ++regions;
  auto enter = [=](int thread) {
    number = thread;
    count = int(threads);
    body(data);
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; ++thread)
    others.emplace_back(enter, int(thread));
  enter(0);
  for (std::thread &other : others)
    other.join();
}

constexpr OpenMP library{parallel, [] { return most; }, [] { return count; },
                         [] { return number; }};
} // namespace plain

/// Runs `holds` in a child, which may share threads for good; whether it answered true.
template <typename Holds> bool inChild(Holds holds) {
  pid_t child = fork();
  if (child == 0)
    _exit(holds() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

/// Regions that a team opened for a call of `threads` threads, if its rounds went well.
int regionsOf(int32_t threads, ThreadTeam::Patience patience) {
  Rounds rounds{ThreadTeam::process()};
  plain::regions = 0;
  rounds.team.run(threads, Rounds::run, &rounds, patience);
  return rounds.wrong == 0 && rounds.threads == threads ? plain::regions : -1;
}

constexpr auto patient = ThreadTeam::Patience::max();

TEST(ThreadTeam, runsOnSharedThreads) {
  EXPECT_TRUE(inChild([] {
    setNumThreads(plain::most = 4);
    ThreadTeam::shareThreads(plain::library);
    return regionsOf(4, patient) == 1 && regionsOf(2, patient) == 1; // two go home
  }));
  EXPECT_TRUE(inChild([] { // regions of other sizes
    setNumThreads(2);
    plain::most = 4;
    ThreadTeam::shareThreads(plain::library);
    return regionsOf(2, patient) == 0;
  }));
  EXPECT_TRUE(inChild([] {
    setNumThreads(plain::most = 2);
    ThreadTeam::shareThreads(plain::library);
    return inChild([] { return regionsOf(2, patient) == 0; });
  }));
}

/// The first call finds no thread awake, for what anybody knows.
TEST(ThreadTeam, shortCallsDoNotWakeSharedThreads) {
  EXPECT_TRUE(inChild([] {
    setNumThreads(plain::most = 2);
    ThreadTeam::shareThreads(plain::library);
    auto nothing = [](void *, int32_t, int32_t) {};
    ThreadTeam::process().run(2, nothing, nullptr, std::chrono::microseconds(1));
    return plain::regions == 0;
  }));
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

TEST(ThreadTeamDeathTest, followsOthersUnlessTold) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto check = [] {
    followThreads([] { return 5; });
    int32_t followed = getNumThreads();
    setNumThreads(2);
    _exit(followed * 10 + getNumThreads());
  };
  EXPECT_EXIT(check(), ::testing::ExitedWithCode(52), "");
}

} // namespace
