// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python/bindings/PeakFlops.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace weft {

namespace {
// Enough independent chains to hide a latency of five cycles on two units.
constexpr int chains = 12;
constexpr int64_t rounds = 2'000'000;
using Kernel = float (*)();
} // namespace

__attribute__((target("avx512f"))) static float fmaAvx512() {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int64_t round = 0; round < rounds; ++round) {
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
  for (int64_t round = 0; round < rounds; ++round) {
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

static double secondsOfOne(Kernel kernel) {
  auto start = std::chrono::steady_clock::now();
  volatile float sink = kernel();
  (void)sink;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double measurePeakFlops(int32_t threads) {
  bool wide = __builtin_cpu_supports("avx512f");
  Kernel kernel = wide ? fmaAvx512 : fmaAvx2;
  double operations = 2.0 * (wide ? 16 : 8) * chains * rounds;
  double best = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::vector<double> seconds(threads);
    std::vector<std::thread> team;
    for (int32_t i = 1; i < threads; ++i)
      team.emplace_back([&, i] { seconds[i] = secondsOfOne(kernel); });
    seconds[0] = secondsOfOne(kernel);
    for (std::thread &thread : team)
      thread.join();
    double sum = 0;
    for (double each : seconds)
      sum += operations / each;
    best = std::max(best, sum);
  }
  return best;
}

} // namespace weft
