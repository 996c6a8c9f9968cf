// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exponentials of f32 vectors, and functions based on them; exp and erfc of f64 vectors.
#ifndef WEFT_COMPILER_KERNELS_VECTORMATH_VECTOREXPONENTIALS_H
#define WEFT_COMPILER_KERNELS_VECTORMATH_VECTOREXPONENTIALS_H

#include "compiler/Kernels/VectorMath/VectorArithmetic.h"

namespace weft {

class VectorExponentials : protected VectorArithmetic {
public:
  VectorExponentials(mlir::ImplicitLocOpBuilder builder, mlir::VectorType type)
      : VectorArithmetic(builder, type) {}

  Value exp(Value x);
  Value exp2(Value x);
  Value powerOfTwo(Value x);
  Value expm1(Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value erfc(Value x);
  Value onePlusErf(Value x);
  /// x (1 + erf(ratio x)), or null without table permutations.
  Value timesOnePlusErf(Value x, double ratio);
  Value onePlusTanh(Value x);

protected:
  /// power * 2^n, even if 2^n or the result is not a normal number; the low bits of `biased` are n
  /// + 2 bias.
  Value scaledTwice(Value power, Value biased);

  /// x = n ln 2 + r, |r| <= ln(2) / 2.
  struct ReducedPair {
    Value biased; ///< an integer whose low bits are n + bias
    Pair r;
  };
  ReducedPair reducePair(Value x, int32_t bias);
  /// exp(r) - 1 - r.high
  Value restOfPower(Pair r);

private:
  /// exp(x) = 2^n * exp(r), |r| <= ln(2) / 2.
  struct Reduced {
    Value biased; ///< an integer whose low bits are n + bias
    Value r;
  };
  Reduced reduce(Value x, int32_t bias);
  /// x y = n + r, |r| <= 1/2, with the exact product; the low bits are n + bias.
  Reduced reduceProduct(Value x, Value y, int32_t bias);
  Value expOfReduced(Value r);
  /// 2^(n + r), |r| <= 1/2, where the low bits of `biased` are n + bias.
  Value exp2OfReduced(Reduced reduced);
  /// 2^x by a polynomial on [-1/2, 1/2], or by a table of sixteenths, permuted per lane: three
  /// multiplications fewer, with AVX-512.
  Value powerOfWhole(Value x);
  Value powerOfSixteenths(Value x);
  /// 2^(x y) with the exact product, which is at most 128: zero at about -127, infinite from 127.5
  /// on.
  Value exp2OfProduct(Value x, Value y);
  /// exp where neither its value nor 2^n leaves the normal floats.
  Value expInRange(Value x);
  /// 1 - erf(x), x >= 0: by one polynomial and a power, or by one of 16 polynomials, with
  /// coefficients permuted per lane: half the multiplications, with AVX-512.
  Value bellOfPower(Value x);
  Value bellOfPieces(Value x);
  /// That polynomial for ratio x >= 0; valid below the end of the pieces.
  Value bellPolynomial(Value x, double ratio);
  /// 2^power exp(x), -176.055 <= x <= 91.
  Value scaledExp(Value x, int32_t power);
};

} // namespace weft

#endif
