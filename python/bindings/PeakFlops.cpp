// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/PeakFlops.h"

#include "runtime/ThreadTeam.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <limits>

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

double measurePeakFlops(int32_t threads) {
  using Clock = std::chrono::steady_clock;
  bool wide = __builtin_cpu_supports("avx512f");
  Kernel kernel = wide ? fmaAvx512 : fmaAvx2;
  auto share = [](void *kernel, int32_t, int32_t) {
    volatile float sink = (*static_cast<Kernel *>(kernel))();
    (void)sink;
  };
  // A core reaches its clock under load only after milliseconds, other work may disturb some
  // rounds, and the system may take a while to part threads that share a core: the best
  // counts, once it has stood for long enough.
  double best = std::numeric_limits<double>::infinity();
  Clock::time_point found = Clock::now();
  for (Clock::time_point start = found; start - found < patience; start = Clock::now()) {
    rt::ThreadTeam::process().run(threads, share, &kernel);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds < 0.98 * best)
      found = start;
    best = std::min(best, seconds);
  }
  return 2.0 * (wide ? 16 : 8) * chains * steps * threads / best;
}

} // namespace weft
