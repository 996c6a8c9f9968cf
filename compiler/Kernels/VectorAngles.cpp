// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorAngles.h"
#include "compiler/Kernels/Float32.h"
#include "compiler/Kernels/VectorMathTables.h"

using namespace mlir;
using namespace weft;
using namespace weft::float32;

constexpr float twoOverPi = 0x1.45f306p-1f;
/// Beyond this the parts of pi / 2 are too few: sines of such arguments are left to the library.
constexpr float longestAngle = 0x1p17f;

Value VectorAngles::sineOfShort(Value x, int32_t quarters) {
  Value shift = constant(integerShift);
  Value shifted = fma(x, constant(twoOverPi), shift);
  Value n = sub(shifted, shift); // exact
  Value turned = addInt(bitsOf(shifted), integer(quarters));
  // x - n pi / 2 = r + low: what the product and the difference lose is kept (T. J. Dekker).
  Value left = fma(n, constant(-halfPiHigh), x); // exact
  Value product = mul(n, constant(halfPiMiddle));
  Value lostInProduct = fma(n, constant(halfPiMiddle), negate(product));
  Value r = sub(left, product);
  Value lost = sub(sub(sub(left, r), product), lostInProduct);
  Value low = fma(n, constant(-halfPiLow), lost);
  Value squared = mul(r, r);
  Value sine = add(r, fma(mul(squared, r), polynomial(vector_math::sinTail, squared), low));
  Value one = constant(1.0f), half = mul(squared, constant(0.5f));
  Value nearly = sub(one, half), rest = sub(sub(one, nearly), half);
  Value tail = mul(squared, polynomial(vector_math::cosTail, squared));
  Value cosine = add(nearly, fma(squared, tail, fma(low, negate(r), rest)));
  Value odd = both(turned, integer(1));
  Value isOdd = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, odd, integer(0));
  Value sign = both(shiftLeft(turned, 30), integer(std::numeric_limits<int32_t>::min()));
  return fromBits(arith::XOrIOp::create(b, bitsOf(select(isOdd, cosine, sine)), sign));
}

Value VectorAngles::sine(Value x, int32_t quarters, Operation *function) {
  // Infinities and NaN are not short either.
  return branch(less(absolute(x), constant(longestAngle)), function, [&] {
    Value value = sineOfShort(x, quarters);
    // Zeros keep their sign.
    return quarters == 0 ? select(equal(x, constant(0.0f)), x, value) : value;
  });
}

Value VectorAngles::tan(Value x, Operation *function) {
  return branch(less(absolute(x), constant(longestAngle)), function, [&] {
    Value quotient = div(sineOfShort(x, /*quarters=*/0), sineOfShort(x, /*quarters=*/1));
    return select(equal(x, constant(0.0f)), x, quotient);
  });
}

Value VectorAngles::angleLess(int32_t quarters, Value x, Value low) {
  Value high = sub(constant(quarters * halfPiHigh), x);
  return add(high, sub(constant(quarters * halfPiMiddle), low));
}

Value VectorAngles::restOfAsin(Value x, Value squared) {
  return mul(mul(squared, x), polynomial(vector_math::asinTail, squared));
}

std::pair<Value, Value> VectorAngles::acosOfLarge(Value x) {
  // Exact, and NaN beyond one.
  Value squared = mul(constant(0.5f), sub(constant(1.0f), x));
  Value root = math::SqrtOp::create(b, squared), rest = restOfAsin(root, squared);
  return {add(root, root), add(rest, rest)};
}

Value VectorAngles::asin(Value x) {
  Value magnitude = absolute(x);
  Value near = add(magnitude, restOfAsin(magnitude, mul(magnitude, magnitude)));
  auto [high, low] = acosOfLarge(magnitude);
  Value isNear = less(magnitude, constant(0.5f));
  return withSignOf(select(isNear, near, angleLess(/*quarters=*/1, high, low)), x);
}

Value VectorAngles::acos(Value x) {
  Value magnitude = absolute(x);
  Value near = angleLess(/*quarters=*/1, x, restOfAsin(x, mul(x, x)));
  auto [high, low] = acosOfLarge(magnitude);
  Value ofNegative = angleLess(/*quarters=*/2, high, low);
  Value far = select(less(x, constant(0.0f)), ofNegative, add(high, low));
  return select(less(magnitude, constant(0.5f)), near, far);
}

Value VectorAngles::atanOfRatio(Value x) { return oddPolynomial(vector_math::atanTail, x); }

Value VectorAngles::atan(Value x) {
  Value magnitude = absolute(x), zero = constant(0.0f), one = constant(1.0f);
  Value isSteep = less(one, magnitude);
  Value angle = atanOfRatio(select(isSteep, div(one, magnitude), magnitude));
  return withSignOf(select(isSteep, angleLess(/*quarters=*/1, angle, zero), angle), x);
}

Value VectorAngles::atan2(Value y, Value x) {
  Value zero = constant(0.0f), rise = absolute(y), run = absolute(x);
  Value isSteep = less(run, rise);
  Value ratio = div(select(isSteep, run, rise), select(isSteep, rise, run));
  // Of two zeros and of two infinities.
  Value ofAlike = select(equal(run, zero), zero, constant(1.0f));
  Value areAlike = both(equal(rise, run), compare(arith::CmpFPredicate::UNO, ratio, ratio));
  Value angle = atanOfRatio(select(areAlike, ofAlike, ratio));
  angle = select(isSteep, angleLess(/*quarters=*/1, angle, zero), angle);
  angle = select(isNegative(x), angleLess(/*quarters=*/2, angle, zero), angle);
  return withSignOf(angle, y);
}
