// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/DoubleExponentials.h"
#include "compiler/Kernels/VectorMath/DoubleMathTables.h"

using namespace mlir;
using namespace weft;

DoubleExponentials::Exponent DoubleExponentials::split(Value x) {
  // Beyond these bounds the scaling gives infinity or zero, as in exp.
  constexpr double most = 1025, least = -2046;
  Value shift = constant(format.integerShift + 2 * format.exponentBias);
  Value bounded = atLeast(atMost(x, most), least), shifted = add(bounded, shift);
  // Exact, and zero for integers.
  return {bitsOf(shifted), sub(bounded, sub(shifted, shift)), equal(bounded, x)};
}

Value DoubleExponentials::exp2(Value x) {
  auto [biased, fraction, isInside] = split(x);
  Value rest = mul(mul(fraction, fraction), polynomial(double_math::exp2Tail, fraction));
  Value power = add(constant(1.0), fma(fraction, constant(double_math::ln2), rest));
  return scaledTwice(power, biased);
}

Value DoubleExponentials::exp2(Pair x) {
  auto [biased, fraction, isInside] = split(x.high);
  // Ignore the low part of an infinite product: it is NaN.
  Value low = select(isInside, x.low, constant(0.0));
  Pair r = multiple(fraction, double_math::ln2, double_math::restOfLn2);
  r = normalized({r.high, fma(low, constant(double_math::ln2), r.low)});
  return scaledTwice(add(constant(1.0), add(r.high, restOfPower(r))), biased);
}

Value DoubleExponentials::expm1(Value x) {
  Value clamped = atLeast(atMost(x, format.expOverflows), -40.0);
  // 2^n - 1 + 2^n r plus the rest, all halved so that 2^1024 does not overflow.
  auto [biased, r] = reducePair(clamped, format.exponentBias - 1);
  Value scale = scaleOf(biased);
  auto [whole, restOfWhole] = fastSum(scale, constant(-0.5));
  Value high = fma(scale, r.high, whole);
  Value lost = add(fma(scale, r.high, sub(whole, high)), restOfWhole);
  Value halved = add(high, fma(scale, restOfPower(r), lost));
  // For tiny x the result is x: halved it could be denormal, and zeros keep their sign.
  Value isTiny = less(absolute(x), constant(0x1p-54));
  return select(isTiny, x, mul(halved, constant(2.0)));
}

DoubleExponentials::Opposite DoubleExponentials::opposite(Value x) {
  // Infinite from here on. The bias is one less than twice the usual one, for the halving.
  Value bounded = atMost(absolute(x), 711.0);
  auto [biased, r] = reducePair(bounded, 2 * format.exponentBias - 1);
  auto [high, low] = fastSum(constant(1.0), r.high);
  Pair power = normalized({high, add(low, restOfPower(r))});
  // For larger n the inverse is below rounding.
  constexpr int64_t largest = 64;
  int64_t zero = llvm::bit_cast<int64_t>(format.integerShift + 2 * format.exponentBias - 1);
  Value n = arith::MinSIOp::create(b, subInt(biased, integer(zero)), integer(largest));
  Value scale = scaleOf(subInt(integer(format.exponentBias), addInt(n, n)));
  return {biased, power, div(scale, power.high)};
}

Value DoubleExponentials::sinh(Value x) {
  Value magnitude = absolute(x);
  Value near = oddPolynomial(double_math::sinhTail, magnitude);
  auto [biased, power, inverse] = opposite(x);
  auto [high, low] = fastSum(power.high, negate(inverse));
  Value far = scaledTwice(add(high, add(low, power.low)), biased);
  Value isNear = less(magnitude, constant(double_math::sinhNearBelow));
  return withSignOf(select(isNear, near, far), x);
}

Value DoubleExponentials::cosh(Value x) {
  auto [biased, power, inverse] = opposite(x);
  auto [high, low] = sum(power.high, inverse);
  return scaledTwice(add(high, add(low, power.low)), biased);
}

Value DoubleExponentials::tanh(Value x) {
  Value magnitude = absolute(x);
  Value near = oddPolynomial(double_math::tanhTail, magnitude);
  // 1 - 2 / (exp(2 |x|) + 1), which is 1 from 19.1 on.
  Value bounded = atMost(magnitude, 20.0);
  auto [biased, r] = reducePair(add(bounded, bounded), format.exponentBias);
  Value scale = scaleOf(biased), one = constant(1.0);
  auto [power, restOfOne] = fastSum(one, r.high);
  Pair base = fastSum(mul(scale, power), one);
  base.low = fma(scale, add(restOfOne, restOfPower(r)), base.low);
  Pair ratio = quotient({constant(2.0), Value()}, normalized(base));
  auto [high, low] = fastSum(one, negate(ratio.high));
  Value far = add(high, sub(low, ratio.low));
  Value isNear = less(magnitude, constant(double_math::tanhNearBelow));
  return withSignOf(select(isNear, near, far), x);
}

Value DoubleExponentials::erf(Value x) {
  Value magnitude = absolute(x), squared = mul(magnitude, magnitude);
  Value near = fma(magnitude, polynomial(double_math::erfNear, squared), magnitude);
  // 1 - exp(log(1 - erf(|x|))), which is 1 from 5.92 on.
  Value bounded = atMost(magnitude, 5.95), slope = polynomial(double_math::erfFar, bounded);
  Value logarithm = fma(slope, bounded, negate(bounded));
  Value lost = fma(slope, bounded, sub(negate(bounded), logarithm));
  auto [biased, r] = reducePair(logarithm, format.exponentBias);
  r.low = add(r.low, lost);
  Value scale = scaleOf(biased), one = constant(1.0);
  auto [power, restOfOne] = fastSum(one, r.high);
  auto [high, low] = fastSum(one, negate(mul(scale, power)));
  Value far = add(high, fma(negate(scale), add(restOfOne, restOfPower(r)), low));
  Value isNear = less(magnitude, constant(double_math::erfNearBelow));
  return withSignOf(select(isNear, near, far), x);
}
