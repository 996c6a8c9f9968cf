// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/VectorPower.h"
#include "compiler/Kernels/VectorMath/VectorMathTables.h"

using namespace mlir;
using namespace weft;

namespace {
/// In f64, with relative error 2^-32: f32 results lose little more than the half ULP of rounding.
class WidePower : private VectorArithmetic {
public:
  WidePower(ImplicitLocOpBuilder builder, VectorType type) : VectorArithmetic(builder, type) {}

  /// x^y as f32, x >= 0; one where x is one or y is zero.
  Value pow(Value x, Value y);
  /// log2(x) times `factor` as f32; NaN for negative numbers.
  Value scaledLog(Value x, double factor);

private:
  Value widen(Value x) { return arith::ExtFOp::create(b, type, x); }
  Value log2(Value x);
  Value exp2(Value x);
  Value narrow(Value x) { return arith::TruncFOp::create(b, type.clone(b.getF32Type()), x); }
};
} // namespace

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int64_t sqrtHalfBits = 0x3fe6a09e667f3bcd;

/// For x widened from f32: denormals are normal numbers here.
Value WidePower::log2(Value x) {
  // n = floor(log2(x / sqrt(1/2))), plus a bias that keeps it from being negative.
  constexpr int64_t bias = 1024;
  Value bits = addInt(bitsOf(x), integer((bias << mantissaBits()) - sqrtHalfBits));
  Value biased = arith::ShRUIOp::create(b, bits, integer(mantissaBits()));
  // Integer to float: the integer in the low bits of 2^52.
  constexpr int64_t shiftBits = 0x4330000000000000;
  Value shifted = fromBits(arith::OrIOp::create(b, biased, integer(shiftBits)));
  Value exponent = sub(shifted, constant(0x1p52 + bias));
  Value fraction = both(bits, integer((int64_t(1) << mantissaBits()) - 1));
  Value mantissa = fromBits(addInt(fraction, integer(sqrtHalfBits)));
  Value one = constant(1.0), s = div(sub(mantissa, one), add(mantissa, one));
  Value log = fma(s, polynomial(vector_math::log2OfRatio, mul(s, s)), exponent);
  // log(infinity) = infinity and log(NaN) = NaN.
  Value atEnds = select(equal(x, constant(0.0)), constant(-infinity), x);
  return select(both(less(constant(0.0), x), less(x, constant(infinity))), log, atEnds);
}

Value WidePower::exp2(Value x) {
  Value shift = constant(format.integerShift + format.exponentBias);
  Value shifted = add(x, shift);
  Value r = sub(x, sub(shifted, shift)); // exact
  Value power = fma(polynomial(vector_math::wideExp2Tail, r), r, constant(1.0));
  return mul(power, scaleOf(bitsOf(shifted)));
}

Value WidePower::pow(Value x, Value y) {
  Value log = log2(widen(x)), exponent = widen(y), zero = constant(0.0);
  Value isOne = arith::OrIOp::create(b, equal(log, zero), equal(exponent, zero));
  // Beyond these bounds an f32 result is zero or infinite.
  constexpr double most = 200.0;
  Value product = atLeast(atMost(mul(exponent, log), most), -most);
  Value power = exp2(select(isOne, zero, product));
  return narrow(power);
}

Value WidePower::scaledLog(Value x, double factor) {
  x = widen(x);
  Value log = log2(x);
  Value nan = constant(std::numeric_limits<double>::quiet_NaN());
  log = select(less(x, constant(0.0)), nan, log);
  return narrow(factor == 1 ? log : mul(log, constant(factor)));
}

Value VectorPower::scaledLog(Value x, double factor) {
  return WidePower(b, type.clone(b.getF64Type())).scaledLog(x, factor);
}

Value VectorPower::log2(Value x) { return scaledLog(x, 1.0); }

Value VectorPower::log10(Value x) { return scaledLog(x, 0x1.34413509f79ffp-2); } // log10(2)

Value VectorPower::pow(Value x, Value y) {
  Value magnitude = WidePower(b, type.clone(b.getF64Type())).pow(absolute(x), y);
  return ofSignedBase(x, y, magnitude);
}

Value VectorPower::ofSignedBase(Value x, Value y, Value magnitude) {
  Value isWhole = equal(truncate(y), y), half = mul(y, constant(0.5));
  Value isOdd = both(isWhole, compare(arith::CmpFPredicate::ONE, truncate(half), half));
  Value power = select(both(isNegative(x), isOdd), negate(magnitude), magnitude);
  Value isNumber = both(less(x, constant(0.0)), less(constant(-infinity), x));
  Value nan = constant(std::numeric_limits<double>::quiet_NaN());
  return select(isNumber, select(isWhole, power, nan), power);
}
