// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/DoubleTrigonometry.h"
#include "compiler/Kernels/VectorMath/DoubleMathTables.h"

using namespace mlir;
using namespace weft;

Value DoubleTrigonometry::tan(Value x, Operation *function) {
  return branch(less(absolute(x), constant(format.longestAngle)), function, [&] {
    // Zeros keep their sign.
    return select(equal(x, constant(0.0)), x, tanOfShort(x));
  });
}

Value DoubleTrigonometry::tanOfShort(Value x) {
  Turn turn = reduce(x);
  Pair cosine = normalized(longCosine(turn));
  // The low part times cos(x), approximately: its effect on the sine is visible in the quotient.
  Value low = turn.rest.low;
  turn.rest.low = fma(mul(turn.squared, constant(-0.5)), low, low);
  Pair sine = normalized(longSine(turn));
  Value isOdd = this->isOdd(turn.number);
  Pair negative = {negate(cosine.high), negate(cosine.low)};
  return collapse(quotient(select(isOdd, negative, sine), select(isOdd, sine, cosine)));
}

VectorArithmetic::Pair DoubleTrigonometry::angleLess(int32_t eighths, Pair x) {
  double part = eighths * 0.5;
  auto [high, low] = fastSum(constant(part * format.halfPiHigh), negate(x.high));
  return {high, add(low, sub(constant(part * format.halfPiMiddle), x.low))};
}

DoubleTrigonometry::Halved DoubleTrigonometry::halvedAsin(Value x) {
  Value magnitude = absolute(x), isNear = less(magnitude, constant(0.5));
  // (1 - |x|) / 2 is exact for |x| >= 1/2; its root is NaN beyond one.
  Value rest = mul(constant(0.5), sub(constant(1.0), magnitude));
  Value squared = select(isNear, mul(magnitude, magnitude), rest);
  Pair argument = select(isNear, Pair{magnitude, constant(0.0)}, squareRoot({rest, Value()}));
  Value cube = mul(squared, argument.high);
  return {isNear,
          {argument.high, fma(cube, polynomial(double_math::asinTail, squared), argument.low)}};
}

Value DoubleTrigonometry::asin(Value x) {
  auto [isNear, angle] = halvedAsin(x);
  Pair twice = {add(angle.high, angle.high), add(angle.low, angle.low)};
  return withSignOf(collapse(select(isNear, angle, angleLess(/*eighths=*/2, twice))), x);
}

Value DoubleTrigonometry::acos(Value x) {
  auto [isNear, angle] = halvedAsin(x);
  Pair twice = {add(angle.high, angle.high), add(angle.low, angle.low)};
  Pair signedAngle = {withSignOf(angle.high, x),
                      select(isNegative(x), negate(angle.low), angle.low)};
  Pair far = select(isNegative(x), angleLess(/*eighths=*/4, twice), twice);
  return collapse(select(isNear, angleLess(/*eighths=*/2, signedAngle), far));
}

VectorArithmetic::Pair DoubleTrigonometry::atanOfRatio(Value rise, Value run) {
  // For ratios above tan(pi / 8), the angle minus pi / 4.
  constexpr double eighthTurn = 0x1.a827999fcef32p-2;
  Value isSteep = less(mul(run, constant(eighthTurn)), rise), zero = constant(0.0);
  Pair more = fastSum(negate(run), rise), both = fastSum(run, rise);
  auto [ratio, lost] =
      quotient(select(isSteep, more, Pair{rise, zero}), select(isSteep, both, Pair{run, zero}));
  Value squared = mul(ratio, ratio);
  lost = fma(negate(squared), lost, lost); // times the derivative, approximately
  Value tail = fma(mul(squared, ratio), polynomial(double_math::atanTail, squared), lost);
  Value base = select(isSteep, constant(0.5 * format.halfPiHigh), zero);
  Value restOfBase = select(isSteep, constant(0.5 * format.halfPiMiddle), zero);
  auto [high, low] = fastSum(base, ratio);
  return {high, add(low, add(tail, restOfBase))};
}

Value DoubleTrigonometry::atan(Value x) {
  // From this bound on, the angle is pi / 2.
  Value magnitude = atMost(absolute(x), 0x1p60), one = constant(1.0);
  Value isSteep = less(one, magnitude);
  Pair angle = atanOfRatio(select(isSteep, one, magnitude), select(isSteep, magnitude, one));
  return withSignOf(collapse(select(isSteep, angleLess(/*eighths=*/2, angle), angle)), x);
}

Value DoubleTrigonometry::atan2(Value y, Value x) {
  Value rise = absolute(y), run = absolute(x), zero = constant(0.0), one = constant(1.0);
  Value isSteep = less(run, rise);
  Value larger = select(isSteep, rise, run), smaller = select(isSteep, run, rise);
  // Two infinities have ratio 1, a finite number to infinity 0, and two zeros 0.
  Value endless = constant(std::numeric_limits<double>::infinity());
  Value isEndless = equal(larger, endless);
  smaller = select(isEndless, select(equal(smaller, endless), one, mul(smaller, zero)), smaller);
  larger = select(orInt(isEndless, equal(larger, zero)), one, larger);
  // Scale, so that neither the sum nor an inverse overflows. Underflow of the smaller number is
  // negligible.
  Value scale = select(less(larger, constant(0x1p-900)), constant(0x1p200),
                       select(less(constant(0x1p900), larger), constant(0x1p-200), one));
  Pair angle = atanOfRatio(mul(smaller, scale), mul(larger, scale));
  angle = select(isSteep, angleLess(/*eighths=*/2, angle), angle);
  angle = select(isNegative(x), angleLess(/*eighths=*/4, angle), angle);
  // NaN if either is.
  Value isNumber = compare(arith::CmpFPredicate::ORD, x, y);
  return select(isNumber, withSignOf(collapse(angle), y), add(x, y));
}
