// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/DoubleLogarithms.h"
#include "compiler/Kernels/VectorMath/DoubleMathTables.h"

using namespace mlir;
using namespace weft;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Below this, f(x) = x + O(x^2) is x to half an ULP.
constexpr double nothingBesideOne = 0x1p-54;
/// Beyond this, x^2 + 1 rounds to x^2, and x^2 overflows later on.
constexpr double largestSquared = 0x1p500;

constexpr int64_t sqrtHalfBits = 0x3fe6a09e667f3bcd;

const DoubleLogarithms::Base DoubleLogarithms::ofE = {float64Format.ln2High, float64Format.ln2Low,
                                                      1.0, 0.0};
const DoubleLogarithms::Base DoubleLogarithms::ofTwo = {1.0, 0.0, double_math::log2OfE,
                                                        double_math::restOfLog2OfE};
const DoubleLogarithms::Base DoubleLogarithms::ofTen = {
    0x1.34413509f8p-2, -0x1.80433b83b532ap-44, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

std::pair<Value, Value> DoubleLogarithms::exponentOf(Value x) {
  // The bias keeps the exponent from being negative.
  constexpr int64_t bias = 1024;
  Value bits = addInt(bitsOf(x), integer((bias << mantissaBits()) - sqrtHalfBits));
  Value biased = arith::ShRUIOp::create(b, bits, integer(mantissaBits()));
  // Integer to float: the integer in the low bits of 2^52.
  Value shifted = fromBits(orInt(biased, integer(llvm::bit_cast<int64_t>(0x1p52))));
  return {sub(shifted, constant(0x1p52 + bias)), bits};
}

DoubleLogarithms::Parts DoubleLogarithms::partsOf(Value x) {
  // Scale denormals to normal numbers, so that their exponent field is valid.
  Value denormal = less(x, constant(format.smallestNormal));
  Value scaled = select(denormal, mul(x, constant(0x1p54)), x);
  Value correction = select(denormal, constant(-54.0), constant(0.0));
  auto [exponent, bits] = exponentOf(scaled);
  Value fraction = both(bits, integer((int64_t(1) << mantissaBits()) - 1));
  Value mantissa = fromBits(addInt(fraction, integer(sqrtHalfBits)));
  return {add(exponent, correction), sub(mantissa, constant(1.0))};
}

VectorArithmetic::Pair DoubleLogarithms::ratioOf(Pair f) {
  Value two = constant(2.0);
  auto [sum, lost] = fastSum(two, f.high);
  return quotient(f, {sum, f.low ? add(lost, f.low) : lost});
}

Value DoubleLogarithms::logOfParts(Value exponent, Pair f, const Base &base) {
  Pair s = ratioOf(f);
  Value twice = add(s.high, s.high), squared = mul(s.high, s.high);
  Value tail =
      fma(mul(squared, s.high), polynomial(double_math::logTail, squared), add(s.low, s.low));
  Pair log = {twice, tail};
  if (base.unitHigh != 1.0) {
    log = multiple(twice, base.unitHigh, base.unitLow);
    log.low = fma(tail, constant(base.unitHigh), log.low);
  }
  // fastSum applies: the product, if nonzero, is the larger.
  Pair sum = fastSum(mul(exponent, constant(base.octaveHigh)), log.high);
  Value low = add(sum.low, log.low);
  return add(sum.high, base.octaveLow ? fma(exponent, constant(base.octaveLow), low) : low);
}

Value DoubleLogarithms::log(Value x, const Base &base) {
  auto [exponent, f] = partsOf(x);
  return withPole(x, 0.0, logOfParts(exponent, {f, Value()}, base));
}

Value DoubleLogarithms::log(Value x) { return log(x, ofE); }
Value DoubleLogarithms::log2(Value x) { return log(x, ofTwo); }
Value DoubleLogarithms::log10(Value x) { return log(x, ofTen); }

Value DoubleLogarithms::log1p(Pair x, Value more) {
  // The exponent is that of 1 + x rounded; f is computed from x itself.
  Value exponent = exponentOf(add(x.high, constant(1.0))).first;
  // 2^-exponent may be denormal, 4 times it is not.
  Value biased = sub(constant(format.integerShift + format.exponentBias + 2), exponent);
  Value scale = mul(scaleOf(bitsOf(biased)), constant(0.25));
  Pair f = sum(mul(x.high, scale), sub(scale, constant(1.0)));
  if (x.low)
    f = normalized({f.high, fma(x.low, scale, f.low)});
  return withPole(x.high, -1.0, logOfParts(more ? add(exponent, more) : exponent, f, ofE));
}

Value DoubleLogarithms::log1p(Value x) {
  // For tiny x the result is x; zeros keep their sign.
  return select(less(absolute(x), constant(nothingBesideOne)), x, log1p(Pair{x, Value()}));
}

Value DoubleLogarithms::asinh(Value x) {
  // log(|x| + sqrt(x^2 + 1)), as log1p without cancellation; log(2 |x|) for large x.
  Value magnitude = absolute(x), one = constant(1.0), zero = constant(0.0);
  Value isLarge = less(constant(largestSquared), magnitude);
  Value bounded = select(isLarge, one, magnitude);
  Pair square = product(bounded, bounded), above = sum(square.high, one);
  Pair root = squareRoot({above.high, add(above.low, square.low)});
  Pair divisor = fastSum(root.high, one);
  Pair rest = quotient(square, {divisor.high, add(divisor.low, root.low)});
  Pair near = sum(bounded, rest.high);
  near.low = add(near.low, rest.low);
  Value value = log1p(select(isLarge, Pair{magnitude, zero}, near), select(isLarge, one, zero));
  Value isTiny = less(magnitude, constant(nothingBesideOne));
  return withSignOf(select(isTiny, magnitude, value), x);
}

Value DoubleLogarithms::acosh(Value x) {
  // log(x + sqrt(x^2 - 1)); log(2 x) for large x.
  Value one = constant(1.0), zero = constant(0.0);
  Value isLarge = less(constant(largestSquared), x), bounded = select(isLarge, one, x);
  Pair above = fastSum(bounded, negate(one)), further = fastSum(bounded, one);
  Pair square = product(above.high, further.high);
  square.low = fma(above.high, further.low, fma(above.low, further.high, square.low));
  Pair root = squareRoot(square), near = sum(root.high, above.high);
  near.low = add(near.low, add(root.low, above.low));
  Value value = log1p(select(isLarge, Pair{x, zero}, near), select(isLarge, one, zero));
  return select(less(x, one), constant(std::numeric_limits<double>::quiet_NaN()), value);
}

Value DoubleLogarithms::atanh(Value x) {
  // log((1 + x) / (1 - x)) / 2
  Value magnitude = absolute(x), one = constant(1.0);
  Pair ratio = quotient({add(magnitude, magnitude), Value()}, fastSum(one, negate(magnitude)));
  Value half = mul(log1p(ratio), constant(0.5));
  Value atPole = select(equal(magnitude, one), constant(infinity), half);
  return withSignOf(select(less(magnitude, constant(nothingBesideOne)), magnitude, atPole), x);
}

VectorArithmetic::Pair DoubleLogarithms::longLog2(Value x) {
  auto [exponent, f] = partsOf(x);
  Pair s = ratioOf({f, Value()});
  // s^2, s^3, 2/3 + s^2 p(s^2), and their product, each with its rounding error.
  Pair square = product(s.high, s.high);
  square.low = fma(add(s.high, s.high), s.low, square.low);
  Pair cube = product(square.high, s.high);
  cube.low = fma(square.high, s.low, fma(square.low, s.high, cube.low));
  Value tail = mul(square.high, polynomial(double_math::powerLogTail, square.high));
  Pair factor = fastSum(constant(double_math::twoThirds), tail);
  factor.low = add(factor.low, constant(double_math::restOfTwoThirds));
  Pair rest = product(cube.high, factor.high);
  rest.low = fma(cube.high, factor.low, fma(cube.low, factor.high, rest.low));
  Pair sum = fastSum(add(s.high, s.high), rest.high);
  sum.low = add(sum.low, add(rest.low, add(s.low, s.low)));
  Pair log = multiple(sum.high, double_math::log2OfE, double_math::restOfLog2OfE);
  log.low = fma(sum.low, constant(double_math::log2OfE), log.low);
  Pair whole = fastSum(exponent, log.high);
  Pair normal = normalized({whole.high, add(whole.low, log.low)});
  // log(infinity) = infinity and log(NaN) = NaN.
  Value atEnds = select(equal(x, constant(0.0)), constant(-infinity), x);
  Value isNumber = both(less(constant(0.0), x), less(x, constant(infinity)));
  return {select(isNumber, normal.high, atEnds), normal.low};
}
