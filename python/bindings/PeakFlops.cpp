// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/PeakFlops.h"

#include "runtime/Arena.h"
#include "runtime/ThreadTeam.h"

#include <immintrin.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

namespace weft {

namespace {
// Enough independent chains to hide a latency of five cycles on two units.
constexpr int chains = 12;
constexpr int64_t steps = 500'000; // of one round: a millisecond
constexpr std::chrono::milliseconds patience(400);
using Kernel = float (*)();
} // namespace

__attribute__((target("avx512f"))) static float fmaAvx512() {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int64_t step = 0; step < steps; ++step) {
#pragma clang loop unroll(full)
    for (int i = 0; i < chains; ++i)
      sums[i] = _mm512_fmadd_ps(sums[i], a, b);
    asm volatile("" : "+v"(a)); // one iteration at a time, nothing folded
  }
  float total = 0;
  for (int i = 0; i < chains; ++i)
    total += _mm512_reduce_add_ps(sums[i]);
  return total;
}

__attribute__((target("avx2,fma"))) static float fmaAvx2() {
  __m256 sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm256_set1_ps(static_cast<float>(i));
  __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int64_t step = 0; step < steps; ++step) {
#pragma clang loop unroll(full)
    for (int i = 0; i < chains; ++i)
      sums[i] = _mm256_fmadd_ps(sums[i], a, b);
    asm volatile("" : "+x"(a));
  }
  float total = 0;
  for (int i = 0; i < chains; ++i)
    total += _mm256_cvtss_f32(sums[i]);
  return total;
}

/// The least seconds of a round of `task` on `threads` threads.
///
/// A core reaches its clock under load only after milliseconds, other work may disturb some
/// rounds, and the system may take a while to part threads that share a core: the best
/// counts, once it has stood for long enough.
static double leastSeconds(int32_t threads, rt::ThreadTeam::Task task, void *data) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  Clock::time_point found = Clock::now();
  for (Clock::time_point start = found; start - found < patience; start = Clock::now()) {
    rt::ThreadTeam::process().run(threads, task, data);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds < 0.98 * best)
      found = start;
    best = std::min(best, seconds);
  }
  return best;
}

double measurePeakFlops(int32_t threads) {
  bool wide = __builtin_cpu_supports("avx512f");
  Kernel kernel = wide ? fmaAvx512 : fmaAvx2;
  auto share = [](void *kernel, int32_t, int32_t) {
    volatile float sink = (*static_cast<Kernel *>(kernel))();
    (void)sink;
  };
  double seconds = leastSeconds(threads, share, &kernel);
  return 2.0 * (wide ? 16 : 8) * chains * steps * threads / seconds;
}

namespace {
/// Cut into equal shares of whole steps, one for each thread.
struct SharedBuffer {
  static constexpr size_t stepBytes = 256; // eight vectors, each in a chain of its own

  explicit SharedBuffer(size_t bytes) : memory(bytes) {}

  std::pair<char *, size_t> shareOf(int32_t thread, int32_t threads) {
    size_t length = memory.size() / threads / stepBytes * stepBytes;
    return {memory.data() + thread * length, length};
  }

  rt::AlignedBuffer memory;
};
} // namespace

__attribute__((target("avx2"))) static void readShare(void *data, int32_t thread, int32_t threads) {
  auto [begin, length] = static_cast<SharedBuffer *>(data)->shareOf(thread, threads);
  __m256i sums[8] = {};
  for (const char *step = begin; step != begin + length; step += SharedBuffer::stepBytes)
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; ++i)
      sums[i] =
          _mm256_xor_si256(sums[i], _mm256_load_si256(reinterpret_cast<const __m256i *>(step) + i));
  for (__m256i &sum : sums)
    asm volatile("" : : "x"(sum)); // what was read counts as used
}

/// Memory that was never written to may all be one page of zeros.
static void writeShare(void *data, int32_t thread, int32_t threads) {
  auto [begin, length] = static_cast<SharedBuffer *>(data)->shareOf(thread, threads);
  std::memset(begin, thread + 1, length);
}

/// Twice the largest cache, so that what is read next has been evicted; `atLeast` where the
/// system does not know its caches.
static size_t beyondCaches() {
  constexpr long atLeast = 64l << 20;
  long cache = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return static_cast<size_t>(std::max(2 * cache, atLeast));
}

double measurePeakBandwidth(int32_t threads) {
  SharedBuffer buffer(beyondCaches());
  rt::ThreadTeam::process().run(threads, writeShare, &buffer);
  double seconds = leastSeconds(threads, readShare, &buffer);
  return static_cast<double>(buffer.shareOf(0, threads).second) * threads / seconds;
}

} // namespace weft
