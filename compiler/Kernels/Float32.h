// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers of the format that elementary functions of f32 are written for.
#ifndef WEFT_COMPILER_KERNELS_FLOAT32_H
#define WEFT_COMPILER_KERNELS_FLOAT32_H

#include <cstdint>
#include <limits>

namespace weft::float32 {

constexpr int32_t exponentBias = 127;
constexpr float infinity = std::numeric_limits<float>::infinity();

// Adding this to a small float leaves the nearest integer in the low bits of the sum.
constexpr float integerShift = 0x1.8p23f;

// ln 2 in two parts. The first has 13 significant bits, so its product with any exponent
// is exact.
constexpr float ln2High = 0x1.62e4p-1f;
constexpr float ln2Low = 0x1.7f7d1cp-20f;

// pi / 2 in three parts, for multiplication with rounding at the end only (fma). The last bit of
// the first is 2^-23: what its product with n < 2^18 leaves of n pi / 2 +- 1 is exact.
constexpr float halfPiHigh = 0x1.921fb6p+0f;
constexpr float halfPiMiddle = -0x1.777a5cp-25f;
constexpr float halfPiLow = -0x1.ee59dap-50f;

} // namespace weft::float32

#endif
