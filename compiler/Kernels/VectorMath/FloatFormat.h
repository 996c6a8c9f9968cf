// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants of the formats that elementary functions are written for. Those of float32 are exactly
// representable, and stored as doubles.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_FLOATFORMAT_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_FLOATFORMAT_H

#include <cstdint>
#include <limits>

namespace weft {

struct FloatFormat {
  int32_t exponentBias;
  double smallestNormal;

  /// Adding this to a small number leaves the nearest integer in the low bits of the sum.
  double integerShift;

  double log2OfE;
  /// ln 2 as a sum of two (Cody and Waite). The first is short, so that its product with any
  /// exponent is exact.
  double ln2High, ln2Low;
  /// exp overflows from about the first on; 2^(n / 2) has a zero exponent field from the second on
  /// down.
  double expOverflows, expVanishes;

  double twoOverPi;
  /// pi / 2 as a sum of three, for FMA. For x within 1 of n pi / 2, x - n times the first is exact
  /// up to longestAngle.
  double halfPiHigh, halfPiMiddle, halfPiLow;
  double longestAngle;

  /// Up to here whole numbers have no gaps, and so has the product of one with a part of another
  /// number.
  double longestQuotient;
};

inline constexpr FloatFormat float32Format = {
    .exponentBias = 127,
    .smallestNormal = std::numeric_limits<float>::min(),
    .integerShift = 0x1.8p23,
    .log2OfE = 0x1.715476p+0,
    .ln2High = 0x1.62e4p-1,
    .ln2Low = 0x1.7f7d1cp-20,
    .expOverflows = 89,
    .expVanishes = -176.055f,
    .twoOverPi = 0x1.45f306p-1,
    .halfPiHigh = 0x1.921fb6p+0,
    .halfPiMiddle = -0x1.777a5cp-25,
    .halfPiLow = -0x1.ee59dap-50,
    .longestAngle = 0x1p17,
    .longestQuotient = 0x1p22,
};

inline constexpr FloatFormat float64Format = {
    .exponentBias = 1023,
    .smallestNormal = std::numeric_limits<double>::min(),
    .integerShift = 0x1.8p52,
    .log2OfE = 0x1.71547652b82fep+0,
    .ln2High = 0x1.62e42fefa4p-1,
    .ln2Low = -0x1.8432a1b0e2634p-43,
    .expOverflows = 710,
    .expVanishes = -1418.1,
    .twoOverPi = 0x1.45f306dc9c883p-1,
    .halfPiHigh = 0x1.921fb54442d18p+0,
    .halfPiMiddle = 0x1.1a62633145c07p-54,
    .halfPiLow = -0x1.f1976b7ed8fbcp-110,
    .longestAngle = 0x1p30,
    .longestQuotient = 0x1p51,
};

} // namespace weft

#endif
