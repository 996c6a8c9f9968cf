// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/LineTransfer.h"

#include "runtime/ThreadTeam.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

namespace weft {

namespace {
struct Ball {
  static constexpr int64_t hits = 2000; // of both threads

  /// A thread's turn is when this, modulo two, is its number.
  alignas(64) std::atomic<int64_t> turn{0};
  double seconds = 0;

  void play(int32_t thread, int32_t threads) {
    if (threads < 2)
      return;
    auto start = std::chrono::steady_clock::now();
    for (int64_t hit = thread; hit < hits; hit += 2) {
      awaitTurn(hit);
      turn.store(hit + 1, std::memory_order_release);
    }
    if (thread == 1)
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void awaitTurn(int64_t hit) {
    constexpr int longest = 10'000; // then the other may be waiting for this processor
    for (int spins = 0; turn.load(std::memory_order_acquire) != hit; ++spins)
      if (spins >= longest)
        std::this_thread::yield();
  }
};
} // namespace

double measureLineTransfer() {
  constexpr int rounds = 5;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    Ball ball;
    auto play = [](void *data, int32_t thread, int32_t threads) {
      static_cast<Ball *>(data)->play(thread, threads);
    };
    rt::ThreadTeam::process().run(2, play, &ball);
    least = std::min(least, ball.seconds / Ball::hits);
  }
  return least;
}

} // namespace weft
