// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/VectorLogarithms.h"
#include "compiler/Kernels/VectorMath/VectorMathTables.h"
#include "compiler/Kernels/VectorMath/VectorPower.h"
#include <limits>
#include <numbers>

using namespace mlir;
using namespace weft;

constexpr double infinity = std::numeric_limits<double>::infinity();
/// For f32: 1 is below rounding, and the square does not overflow.
constexpr double largeBesideOne = 1e8;
constexpr int32_t sqrtHalfBits = 0x3f3504f3;

std::pair<Value, Value> VectorLogarithms::exponentOf(Value x) {
  Value bits = subInt(bitsOf(x), integer(sqrtHalfBits));
  return {shiftRight(bits, mantissaBits()), bits};
}

Value VectorLogarithms::logOfParts(Value exponent, Value f) {
  Value tail = polynomial(vector_math::logTail, f);
  Value low = fma(mul(f, f), tail, mul(exponent, constant(format.ln2Low)));
  // exponent * format.ln2High + f with its rounding error (T. J. Dekker, "A floating-point
  // technique for extending the available precision", 1971); the product, if nonzero, is the
  // larger.
  Value high = fma(exponent, constant(format.ln2High), f);
  Value lost = add(fma(exponent, constant(format.ln2High), negate(high)), f);
  return add(high, add(lost, low));
}

Value VectorLogarithms::withPole(Value x, double pole, Value log) {
  Value atPole = constant(pole);
  Value outside = select(equal(x, atPole), constant(-infinity),
                         constant(std::numeric_limits<double>::quiet_NaN()));
  Value inside = select(equal(x, constant(infinity)), x, log);
  return select(less(atPole, x), inside, outside);
}

Value VectorLogarithms::log(Value x) {
  // Scale denormals to normal numbers, so that their exponent field is valid.
  Value denormal = less(x, constant(format.smallestNormal));
  Value scaled = select(denormal, mul(x, constant(0x1p23f)), x);
  Value correction = select(denormal, constant(-23.0f), constant(0.0f));
  auto [exponent, bits] = exponentOf(scaled);
  Value fraction = both(bits, integer((int64_t(1) << mantissaBits()) - 1));
  Value mantissa = fromBits(addInt(fraction, integer(sqrtHalfBits)));
  Value f = sub(mantissa, constant(1.0f));
  return withPole(x, 0.0f, logOfParts(add(toFloat(exponent), correction), f));
}

Value VectorLogarithms::log1p(Value x) {
  // The exponent is that of 1 + x rounded; f is computed from x itself and rounds once.
  auto [exponent, bits] = exponentOf(add(x, constant(1.0f)));
  // 2^-exponent may be denormal, 4 times it is not.
  Value fourfold = scaleOf(subInt(integer(format.exponentBias + 2), exponent));
  Value scale = mul(fourfold, constant(0.25f));
  Value f = fma(x, scale, sub(scale, constant(1.0f)));
  Value log = withPole(x, -1.0f, logOfParts(toFloat(exponent), f));
  // Zeros keep their sign.
  return select(equal(x, constant(0.0f)), x, log);
}

// In f64, so that logarithms of integer powers are exact.
Value VectorLogarithms::log2(Value x) { return VectorPower(b, type).log2(x); }
Value VectorLogarithms::log10(Value x) { return VectorPower(b, type).log10(x); }

Value VectorLogarithms::log1pOrLogOfTwice(Value isLarge, Value x) {
  Value rest = select(isLarge, constant(std::numbers::ln2), constant(0.0));
  return add(log1p(x), rest);
}

Value VectorLogarithms::asinh(Value x) {
  // log(|x| + sqrt(x^2 + 1)), as log1p without cancellation.
  Value magnitude = absolute(x), one = constant(1.0), squared = mul(magnitude, magnitude);
  Value isLarge = less(constant(largeBesideOne), magnitude);
  Value rest = div(squared, add(root(add(squared, one)), one));
  Value near = add(magnitude, rest);
  Value value = log1pOrLogOfTwice(isLarge, select(isLarge, magnitude, near));
  return withSignOf(value, x);
}

Value VectorLogarithms::acosh(Value x) {
  // log(x + sqrt(x^2 - 1))
  Value above = sub(x, constant(1.0)), isLarge = less(constant(largeBesideOne), x);
  Value near = add(above, root(mul(above, add(above, constant(2.0)))));
  Value value = log1pOrLogOfTwice(isLarge, select(isLarge, x, near));
  return select(less(x, constant(1.0)), constant(std::numeric_limits<double>::quiet_NaN()), value);
}

Value VectorLogarithms::atanh(Value x) {
  // log((1 + x) / (1 - x)) / 2
  Value magnitude = absolute(x);
  Value ratio = div(add(magnitude, magnitude), sub(constant(1.0), magnitude));
  return withSignOf(mul(log1p(ratio), constant(0.5)), x);
}
