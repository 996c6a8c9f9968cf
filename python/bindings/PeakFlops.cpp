// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/PeakFlops.h"

#include "runtime/Arena.h"
#include "runtime/CpuFeatures.h"
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
  double seconds = leastSeconds(threads, share, static_cast<void *>(&kernel));
  return 2.0 * (wide ? 16 : 8) * chains * steps * threads / seconds;
}

namespace {
/// As the processor reads it; source: Intel, "Architecture Instruction Set Extensions", tile
/// configuration.
struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t columnBytes[16] = {};
  uint8_t rows[16] = {};
};
constexpr int64_t matrixSteps = 50'000; // of one round: a millisecond
} // namespace

/// Four tiles of sums, products of two tiles by two.
__attribute__((target("amx-tile,amx-bf16"))) static void matrixShare(void *, int32_t, int32_t) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.columnBytes[tile] = 64;
    config.rows[tile] = 16;
  }
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t step = 0; step < matrixSteps; ++step) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

double measureMatrixFlops(int32_t threads) {
  if (!rt::missingCpuFeatures({"amx-tile", "amx-bf16"}).empty())
    return 0;
  constexpr double flopsOfTile = 2.0 * 16 * 16 * 32, tiles = 4;
  double seconds = leastSeconds(threads, matrixShare, nullptr);
  return flopsOfTile * tiles * matrixSteps * threads / seconds;
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
  int64_t passes = 1; ///< reads of a share in one round
};
} // namespace

__attribute__((target("avx2"))) static void readShare(void *data, int32_t thread, int32_t threads) {
  auto *buffer = static_cast<SharedBuffer *>(data);
  auto [begin, length] = buffer->shareOf(thread, threads);
  __m256i sums[8] = {};
  for (int64_t pass = 0; pass < buffer->passes; ++pass)
    for (const char *step = begin; step != begin + length; step += SharedBuffer::stepBytes)
#pragma clang loop unroll(full)
      for (int i = 0; i < 8; ++i)
        sums[i] = _mm256_xor_si256(sums[i],
                                   _mm256_load_si256(reinterpret_cast<const __m256i *>(step) + i));
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

static double measureReads(SharedBuffer &buffer, int32_t threads) {
  rt::ThreadTeam::process().run(threads, writeShare, &buffer);
  double seconds = leastSeconds(threads, readShare, &buffer);
  auto read = static_cast<double>(buffer.shareOf(0, threads).second) * buffer.passes;
  return read * threads / seconds;
}

double measurePeakBandwidth(int32_t threads) {
  SharedBuffer buffer(beyondCaches());
  return measureReads(buffer, threads);
}

double measureCacheBandwidth(int32_t threads, int32_t level) {
  long second = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (second <= 0)
    return 0;
  // Half of the second level, or twice as much as it holds, which then comes from the third.
  long bytes = level == 2 ? second / 2 : 2 * second;
  SharedBuffer buffer(static_cast<size_t>(bytes) * threads);
  constexpr int64_t bytesOfRound = 32 << 20; // a millisecond
  buffer.passes = std::max<int64_t>(1, bytesOfRound / bytes);
  return measureReads(buffer, threads);
}

} // namespace weft
