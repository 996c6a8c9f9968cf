// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/VectorExponentials.h"
#include "compiler/Kernels/VectorMath/DoubleMathTables.h"
#include "compiler/Kernels/VectorMath/VectorMathTables.h"

using namespace mlir;
using namespace weft;

VectorExponentials::Reduced VectorExponentials::reduce(Value x, int32_t bias) {
  // The shift is a multiple of a large power of two, so it vanishes when the low bits are shifted
  // into the exponent field.
  Value shift = constant(format.integerShift + bias);
  Value shifted = fma(x, constant(format.log2OfE), shift);
  Value n = sub(shifted, shift); // exact
  Value r = fma(n, constant(-format.ln2High), x);
  return {bitsOf(shifted), fma(n, constant(-format.ln2Low), r)};
}

VectorExponentials::ReducedPair VectorExponentials::reducePair(Value x, int32_t bias) {
  Value shift = constant(format.integerShift + bias);
  Value shifted = fma(x, constant(format.log2OfE), shift);
  Value n = sub(shifted, shift);                     // exact
  Value left = fma(n, constant(-format.ln2High), x); // exact
  Value r = fma(n, constant(-format.ln2Low), left);
  return {bitsOf(shifted), {r, fma(n, constant(-format.ln2Low), sub(left, r))}};
}

Value VectorExponentials::restOfPower(Pair r) {
  // The low part times exp(r), approximately.
  Value low = fma(r.low, r.high, r.low), squared = mul(r.high, r.high);
  if (!isWide())
    return fma(squared, polynomial(vector_math::expTail, r.high), low);
  // The first coefficient is large: add it last, outside the polynomial's chains.
  ArrayRef<double> coefficients = double_math::expTail;
  Value tail = polynomial(coefficients.drop_front(), r.high);
  return fma(squared, fma(tail, r.high, constant(coefficients.front())), low);
}

Value VectorExponentials::expOfReduced(Value r) {
  Value one = constant(1.0f);
  Value tail = polynomial(vector_math::expTail, double_math::expTail, r);
  return fma(fma(tail, r, one), r, one);
}

Value VectorExponentials::exp2OfReduced(Reduced reduced) {
  auto [biased, r] = reduced;
  Value power = fma(polynomial(vector_math::exp2Tail, r), r, constant(1.0f));
  return mul(power, scaleOf(biased));
}

VectorExponentials::Reduced VectorExponentials::reduceProduct(Value x, Value y, int32_t bias) {
  Value shift = constant(format.integerShift + bias);
  Value shifted = fma(x, y, shift);
  return {bitsOf(shifted), fma(x, y, sub(shift, shifted))};
}

Value VectorExponentials::exp2OfProduct(Value x, Value y) {
  return exp2OfReduced(reduceProduct(x, y, format.exponentBias));
}

Value VectorExponentials::expInRange(Value x) {
  auto [biased, r] = reduce(x, format.exponentBias);
  return mul(expOfReduced(r), scaleOf(biased));
}

Value VectorExponentials::exp(Value x) {
  // Beyond these bounds the scaling gives infinity or zero. At the lower one, -254 ln 2 for f32,
  // the scale itself is zero, as for masked scores of a softmax: otherwise the last product would
  // underflow, which is a hundred times slower.
  return scaledExp(atLeast(atMost(x, format.expOverflows), format.expVanishes), /*power=*/0);
}

Value VectorExponentials::exp2(Value x) {
  // Beyond these bounds the scaling gives infinity or zero, as in exp.
  x = atLeast(atMost(x, 129.0f), -2 * format.exponentBias);
  Value shift = constant(format.integerShift + 2 * format.exponentBias);
  Value shifted = add(x, shift);
  Value r = sub(x, sub(shifted, shift)); // exact, and zero for integers
  Value power = fma(polynomial(vector_math::exp2Tail, r), r, constant(1.0f));
  return scaledTwice(power, bitsOf(shifted));
}

Value VectorExponentials::scaledExp(Value x, int32_t power) {
  auto [biased, r] = reduce(x, 2 * format.exponentBias + power);
  return scaledTwice(expOfReduced(r), biased);
}

Value VectorExponentials::scaledTwice(Value power, Value biased) {
  // 2^n may not be representable although the result is; two factors always are, and only the
  // second product can round.
  Value half = shiftRight(biased, 1);
  Value rest = subInt(biased, half);
  return mul(mul(power, scaleOf(half)), scaleOf(rest));
}

Value VectorExponentials::powerOfTwo(Value x) {
  return hasPermutation() ? powerOfSixteenths(x) : powerOfWhole(x);
}

Value VectorExponentials::powerOfWhole(Value x) {
  // From the bound on down, the scale is zero.
  x = atLeast(x, -format.exponentBias);
  Value shift = constant(format.integerShift + format.exponentBias);
  Value shifted = add(x, shift);
  Value r = sub(x, sub(shifted, shift)); // exact
  return exp2OfReduced({bitsOf(shifted), r});
}

Value VectorExponentials::powerOfSixteenths(Value x) {
  // x = n + i / 16 + r, |r| <= 1/32; the low bits are 16 n + i.
  constexpr int64_t fractionBits = 4;
  int64_t exponentShift = mantissaBits() - fractionBits;
  Value shift = constant(format.integerShift / (1 << fractionBits));
  Value shifted = add(x, shift), bits = bitsOf(shifted);
  Value r = sub(x, sub(shifted, shift)); // exact
  // Table entries exclude what i adds to the exponent field when shifted into it with n.
  SmallVector<float> scales;
  for (auto [i, power] : llvm::enumerate(vector_math::exp2Sixteenths))
    scales.push_back(
        llvm::bit_cast<float>(llvm::bit_cast<uint32_t>(power) - (uint32_t(i) << exponentShift)));
  Value picked = bitsOf(pick(scales, bits));
  Value scale = fromBits(addInt(picked, shiftLeft(bits, exponentShift)));
  Value power = fma(scale, mul(polynomial(vector_math::exp2ShortTail, r), r), scale);
  // Unordered comparison: NaN passes.
  Value isNormal = compare(arith::CmpFPredicate::UGE, x, constant(1 - format.exponentBias));
  return select(isNormal, power, constant(0.0f));
}

Value VectorExponentials::expm1(Value x) {
  Value clamped = atLeast(atMost(x, 89.0f), -20.0f);
  // 2^n expm1(r) + (2^n - 1), all halved so that 2^128 does not overflow.
  auto [biased, r] = reduce(clamped, format.exponentBias - 1);
  Value tail = polynomial(vector_math::expm1Tail, r);
  Value reduced = fma(tail, mul(r, r), r);
  Value scale = scaleOf(biased);
  Value halved = fma(scale, reduced, sub(scale, constant(0.5f)));
  // Zeros keep their sign.
  return select(equal(x, constant(0.0f)), x, mul(halved, constant(2.0f)));
}

Value VectorExponentials::sinh(Value x) {
  Value magnitude = absolute(x);
  Value near = oddPolynomial(vector_math::sinhTail, magnitude);
  // exp(|x|) / 2 - exp(-|x|) / 2, which is infinite from 89.42 on.
  Value half = scaledExp(atMost(magnitude, 90.0f), /*power=*/-1);
  Value far = sub(half, div(constant(0.25f), half));
  Value isNear = less(magnitude, constant(vector_math::sinhNearBelow));
  return withSignOf(select(isNear, near, far), x);
}

Value VectorExponentials::cosh(Value x) {
  Value half = scaledExp(atMost(absolute(x), 90.0f), /*power=*/-1);
  return add(half, div(constant(0.25f), half));
}

Value VectorExponentials::tanh(Value x) {
  Value magnitude = absolute(x);
  Value near = oddPolynomial(vector_math::tanhTail, magnitude);
  // 1 - 2 / (exp(2 |x|) + 1), which is 1 from 9.02 on.
  Value bounded = atMost(magnitude, 10.0f);
  Value power = expInRange(add(bounded, bounded));
  Value one = constant(1.0f);
  Value far = sub(one, div(constant(2.0f), add(power, one)));
  Value isNear = less(magnitude, constant(vector_math::tanhNearBelow));
  return withSignOf(select(isNear, near, far), x);
}

Value VectorExponentials::erf(Value x) {
  Value magnitude = absolute(x);
  Value squared = mul(magnitude, magnitude);
  Value near = fma(magnitude, polynomial(vector_math::erfNear, squared), magnitude);
  // 1 - exp(log(1 - erf(|x|))), which is 1 from 3.92 on.
  Value bounded = atMost(magnitude, 3.95f);
  Value logarithm = fma(polynomial(vector_math::erfFar, bounded), bounded, negate(bounded));
  Value far = sub(constant(1.0f), expInRange(logarithm));
  Value isNear = less(magnitude, constant(vector_math::erfNearBelow));
  return withSignOf(select(isNear, near, far), x);
}

Value VectorExponentials::erfc(Value x) {
  Value magnitude = absolute(x), one = constant(1.0);
  // 1 - x - (erf(x) - x)
  Value slope = polynomial(vector_math::erfNear, double_math::erfNear, mul(x, x));
  auto [high, low] = fastSum(one, negate(x));
  Value near = add(high, fma(negate(x), slope, low));
  // exp(-x^2) times a quotient of |x|
  Value end = constant(isWide() ? double_math::erfcVanishes : vector_math::erfcVanishes);
  Value bounded = select(less(end, magnitude), end, magnitude), four = constant(4.0);
  Pair square = product(bounded, bounded);
  auto [biased, r] = reducePair(negate(square.high), 2 * format.exponentBias);
  r = normalized({r.high, sub(r.low, square.low)});
  auto [power, restOfOne] = fastSum(one, r.high);
  Value rest = add(restOfOne, restOfPower(r));
  Value variable = div(sub(bounded, four), add(bounded, four));
  Value tail = polynomial(vector_math::erfcFar, double_math::erfcFar, variable);
  Pair factor = quotient(fastSum(constant(1.25), tail), fastSum(add(bounded, bounded), one));
  Pair whole = product(power, factor.high);
  whole.low = fma(rest, factor.high, fma(power, factor.low, whole.low));
  Value far = scaledTwice(collapse(whole), biased);
  far = select(less(x, constant(0.0)), sub(constant(2.0), far), far);
  Value limit = constant(isWide() ? double_math::erfcNearBelow : vector_math::erfcNearBelow);
  return select(less(magnitude, limit), near, far);
}

Value VectorExponentials::onePlusErf(Value x) {
  Value magnitude = absolute(x);
  Value rest = hasPermutation() ? bellOfPieces(magnitude) : bellOfPower(magnitude);
  return select(less(x, constant(0.0f)), rest, sub(constant(2.0f), rest));
}

Value VectorExponentials::bellOfPower(Value x) {
  // From 3.92 on below half an ULP of one; at the bound the scale is zero, and so is the result.
  x = atMost(x, vector_math::bellVanishes);
  return exp2OfProduct(polynomial(vector_math::bellSlope, x), x);
}

Value VectorExponentials::timesOnePlusErf(Value x, double ratio) {
  if (!hasPermutation())
    return {};
  // For both signs of x: 2 max(x, 0) - |x| (1 - erf(ratio |x|)). Infinities and NaN give the first
  // term.
  Value magnitude = absolute(x), twice = add(x, magnitude);
  Value product = fma(negate(magnitude), bellPolynomial(magnitude, ratio), twice);
  Value isWithin =
      compare(arith::CmpFPredicate::ULT, magnitude, constant(vector_math::bellPiecesEnd / ratio));
  return withSignOf(select(isWithin, product, twice), x);
}

Value VectorExponentials::bellPolynomial(Value x, double ratio) {
  auto [number, r] = reduceProduct(x, constant(vector_math::bellPiecesPerUnit * ratio), /*bias=*/0);
  Value sum;
  for (auto &coefficients : llvm::reverse(vector_math::bellPieces)) {
    Value coefficient = pick(coefficients, number);
    sum = sum ? fma(sum, r, coefficient) : coefficient;
  }
  return sum;
}

Value VectorExponentials::bellOfPieces(Value x) {
  Value sum = bellPolynomial(x, /*ratio=*/1.0);
  // Unordered comparison: NaN passes.
  Value isWithin = compare(arith::CmpFPredicate::ULT, x, constant(vector_math::bellPiecesEnd));
  return select(isWithin, sum, constant(0.0f));
}

Value VectorExponentials::onePlusTanh(Value x) {
  // 2 / (1 + 2^(s x)): half the cost of tanh, whose relative accuracy around zero is not needed. At
  // the bounds the power is zero, and infinite.
  Value bounded = atLeast(atMost(x, 44.02f), -44.37f);
  Value power = exp2OfProduct(constant(-2 * format.log2OfE), bounded);
  return div(constant(2.0f), add(power, constant(1.0f)));
}
