// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/VectorTrigonometry.h"
#include "compiler/Kernels/VectorMath/DoubleMathTables.h"
#include "compiler/Kernels/VectorMath/VectorMathTables.h"

using namespace mlir;
using namespace weft;

VectorTrigonometry::Turn VectorTrigonometry::reduce(Value x) {
  Value shift = constant(format.integerShift);
  Value shifted = fma(x, constant(format.twoOverPi), shift);
  Value n = sub(shifted, shift); // exact
  // x - n pi / 2 = r + low, with the rounding errors of product and difference in low (T. J.
  // Dekker).
  Value left = fma(n, constant(-format.halfPiHigh), x); // exact
  auto [middle, lostInProduct] = product(n, constant(format.halfPiMiddle));
  Value r = sub(left, middle);
  Value lost = sub(sub(sub(left, r), middle), lostInProduct);
  Value low = fma(n, constant(-format.halfPiLow), lost);
  return {bitsOf(shifted), {r, low}, mul(r, r)};
}

VectorArithmetic::Pair VectorTrigonometry::longSine(const Turn &turn) {
  auto [r, low] = turn.rest;
  Value tail = polynomial(vector_math::sinTail, double_math::sinTail, turn.squared);
  return {r, fma(mul(turn.squared, r), tail, low)};
}

VectorArithmetic::Pair VectorTrigonometry::longCosine(const Turn &turn) {
  auto [r, low] = turn.rest;
  Value one = constant(1.0f), half = mul(turn.squared, constant(0.5f));
  Value nearly = sub(one, half), rest = sub(sub(one, nearly), half);
  Value tail =
      mul(turn.squared, polynomial(vector_math::cosTail, double_math::cosTail, turn.squared));
  return {nearly, fma(turn.squared, tail, fma(low, negate(r), rest))};
}

Value VectorTrigonometry::isOdd(Value number) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, both(number, integer(1)), integer(0));
}

Value VectorTrigonometry::sineOfShort(Value x, int32_t quarters) {
  Turn turn = reduce(x);
  Value turned = addInt(turn.number, integer(quarters));
  Value sine = collapse(longSine(turn)), cosine = collapse(longCosine(turn));
  Value sign = both(shiftLeft(turned, signBit() - 1), integer(int64_t(-1) << signBit()));
  Value value = select(isOdd(turned), cosine, sine);
  return fromBits(arith::XOrIOp::create(b, bitsOf(value), sign));
}

Value VectorTrigonometry::sine(Value x, int32_t quarters, Operation *function) {
  // Infinities and NaN take the library function too.
  return branch(less(absolute(x), constant(format.longestAngle)), function, [&] {
    Value value = sineOfShort(x, quarters);
    // Zeros keep their sign.
    return quarters == 0 ? select(equal(x, constant(0.0f)), x, value) : value;
  });
}

Value VectorTrigonometry::tan(Value x, Operation *function) {
  return branch(less(absolute(x), constant(format.longestAngle)), function, [&] {
    Value quotient = div(sineOfShort(x, /*quarters=*/0), sineOfShort(x, /*quarters=*/1));
    return select(equal(x, constant(0.0f)), x, quotient);
  });
}

Value VectorTrigonometry::angleLess(int32_t quarters, Value x, Value low) {
  Value high = sub(constant(quarters * format.halfPiHigh), x);
  return add(high, sub(constant(quarters * format.halfPiMiddle), low));
}

Value VectorTrigonometry::restOfAsin(Value x, Value squared) {
  return mul(mul(squared, x), polynomial(vector_math::asinTail, squared));
}

std::pair<Value, Value> VectorTrigonometry::acosOfLarge(Value x) {
  // Exact; its root is NaN for x > 1.
  Value squared = mul(constant(0.5f), sub(constant(1.0f), x));
  Value root = math::SqrtOp::create(b, squared), rest = restOfAsin(root, squared);
  return {add(root, root), add(rest, rest)};
}

Value VectorTrigonometry::asin(Value x) {
  Value magnitude = absolute(x);
  Value near = add(magnitude, restOfAsin(magnitude, mul(magnitude, magnitude)));
  auto [high, low] = acosOfLarge(magnitude);
  Value isNear = less(magnitude, constant(0.5f));
  return withSignOf(select(isNear, near, angleLess(/*quarters=*/1, high, low)), x);
}

Value VectorTrigonometry::acos(Value x) {
  Value magnitude = absolute(x);
  Value near = angleLess(/*quarters=*/1, x, restOfAsin(x, mul(x, x)));
  auto [high, low] = acosOfLarge(magnitude);
  Value ofNegative = angleLess(/*quarters=*/2, high, low);
  Value far = select(less(x, constant(0.0f)), ofNegative, add(high, low));
  return select(less(magnitude, constant(0.5f)), near, far);
}

Value VectorTrigonometry::atanOfRatio(Value x) { return oddPolynomial(vector_math::atanTail, x); }

Value VectorTrigonometry::atan(Value x) {
  Value magnitude = absolute(x), zero = constant(0.0f), one = constant(1.0f);
  Value isSteep = less(one, magnitude);
  Value angle = atanOfRatio(select(isSteep, div(one, magnitude), magnitude));
  return withSignOf(select(isSteep, angleLess(/*quarters=*/1, angle, zero), angle), x);
}

Value VectorTrigonometry::atan2(Value y, Value x) {
  Value zero = constant(0.0f), rise = absolute(y), run = absolute(x);
  Value isSteep = less(run, rise);
  Value ratio = div(select(isSteep, run, rise), select(isSteep, rise, run));
  // Two zeros have ratio 0, two infinities 1.
  Value ofAlike = select(equal(run, zero), zero, constant(1.0f));
  Value areAlike = both(equal(rise, run), compare(arith::CmpFPredicate::UNO, ratio, ratio));
  Value angle = atanOfRatio(select(areAlike, ofAlike, ratio));
  angle = select(isSteep, angleLess(/*quarters=*/1, angle, zero), angle);
  angle = select(isNegative(x), angleLess(/*quarters=*/2, angle, zero), angle);
  return withSignOf(angle, y);
}
