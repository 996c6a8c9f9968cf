// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expands elementary functions of f32 vectors. Each reduces its argument to a short
// interval, evaluates a polynomial there (VectorMathTables.h) and undoes the reduction, for
// all lanes alike: branches become selects. The reductions are those of W. J. Cody and
// W. Waite, "Software Manual for the Elementary Functions", 1980.
#include "compiler/Kernels/VectorMath.h"
#include "compiler/Kernels/VectorMathTables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

using namespace mlir;
using namespace weft;

// ln 2 in two parts. The first has 13 significant bits, so its product with any exponent
// is exact.
constexpr float log2OfE = 0x1.715476p+0f;
constexpr float ln2High = 0x1.62e4p-1f;
constexpr float ln2Low = 0x1.7f7d1cp-20f;
// pi / 2 in three parts, for multiplication with rounding at the end only (fma). The last bit of
// the first is 2^-23: what its product with n < 2^18 leaves of n pi / 2 +- 1 is exact.
constexpr float halfPiHigh = 0x1.921fb6p+0f;
constexpr float halfPiMiddle = -0x1.777a5cp-25f;
constexpr float halfPiLow = -0x1.ee59dap-50f;
constexpr float twoOverPi = 0x1.45f306p-1f;
/// Beyond this the parts are too few: sines of such arguments are left to the library.
constexpr float longestAngle = 0x1p17f;
/// Up to here whole numbers are floats, and so is the product of one with a part of another float.
constexpr float longestQuotient = 0x1p22f;
constexpr float infinity = std::numeric_limits<float>::infinity();

// Adding this to a small float leaves the nearest integer in the low bits of the sum.
constexpr float integerShift = 0x1.8p23f;
constexpr int32_t exponentBias = 127;
constexpr int32_t mantissaBits = 23;
constexpr int32_t sqrtHalfBits = 0x3f3504f3;

namespace {
/// Vector arithmetic at one place, on vectors of one type.
class VectorCode {
public:
  VectorCode(ImplicitLocOpBuilder builder, VectorType type)
      : b(builder), type(type), intType(type.clone(b.getI32Type())) {}

  Value exp(Value x);
  Value powerOfTwo(Value x);
  Value expm1(Value x);
  Value log(Value x);
  Value log1p(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value onePlusErf(Value x);
  /// The sine of x + `quarters` * pi / 2, which is what `function` of the library computes.
  Value sine(Value x, int32_t quarters, Operation *function);
  Value tan(Value x, Operation *function);
  Value remainder(Value x, Value y, Operation *function);

private:
  /// exp(x) = 2^n * exp(r), |r| <= ln(2) / 2.
  struct Reduced {
    Value biased; ///< an integer whose low bits are n + bias
    Value r;
  };
  Reduced reduce(Value x, int32_t bias);
  Value expOfReduced(Value r);
  Value sineOfShort(Value x, int32_t quarters);
  /// `inVectors` where all lanes of `isEasy` hold, else `function` of the library.
  Value branch(Value isEasy, Operation *function, llvm::function_ref<Value()> inVectors);
  /// 2^(n + r), |r| <= 1/2, where the low bits of `biased` are n + bias.
  Value exp2OfReduced(Reduced reduced);
  /// exp where neither its value nor 2^n leaves the normal floats.
  Value expInRange(Value x);
  /// log(2^exponent * (1 + f)), sqrt(1/2) <= 1 + f < sqrt(2).
  Value logOfParts(Value exponent, Value f);
  /// n = floor(log2(x / sqrt(1/2))); also the bits of x less those of sqrt(1/2).
  std::pair<Value, Value> exponentOf(Value x);
  /// The values of log at and beyond its pole, for `x` with `log` right elsewhere.
  Value withPole(Value x, float pole, Value log);

  Value polynomial(ArrayRef<float> coefficients, Value x) {
    Value sum = constant(coefficients.back());
    for (float coefficient : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }

  Value constant(float value) { return splat(type, b.getF32FloatAttr(value)); }
  Value constant(int32_t value) { return splat(intType, b.getI32IntegerAttr(value)); }
  Value splat(VectorType of, Attribute value) {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(of, value));
  }

  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value negate(Value x) { return arith::NegFOp::create(b, x); }
  Value absolute(Value x) { return math::AbsFOp::create(b, x); }
  Value withSignOf(Value x, Value sign) { return math::CopySignOp::create(b, x, sign); }

  Value bitsOf(Value x) { return arith::BitcastOp::create(b, intType, x); }
  Value fromBits(Value bits) { return arith::BitcastOp::create(b, type, bits); }
  Value toFloat(Value integer) { return arith::SIToFPOp::create(b, type, integer); }
  Value subInt(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value shiftRight(Value x, int32_t by) { return arith::ShRSIOp::create(b, x, constant(by)); }
  Value shiftLeft(Value x, int32_t by) { return arith::ShLIOp::create(b, x, constant(by)); }
  /// The float 2^(k - bias), where the low bits of `biased` are k.
  Value scaleOf(Value biased) { return fromBits(shiftLeft(biased, mantissaBits)); }

  // Ordered: false for NaN.
  Value less(Value x, Value y) { return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y); }
  Value equal(Value x, Value y) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, condition, yes, no);
  }
  // NaN passes: the comparison is false, and x86 has one instruction for just this.
  Value atMost(Value x, float bound) {
    Value limit = constant(bound);
    return select(less(limit, x), limit, x);
  }
  Value atLeast(Value x, float bound) {
    Value limit = constant(bound);
    return select(less(x, limit), limit, x);
  }

  ImplicitLocOpBuilder b;
  VectorType type, intType;
};
} // namespace

VectorCode::Reduced VectorCode::reduce(Value x, int32_t bias) {
  // The shift is a multiple of 2^22, so it leaves no trace once the low 9 bits are shifted
  // into the exponent field.
  Value shift = constant(integerShift + bias);
  Value shifted = fma(x, constant(log2OfE), shift);
  Value n = sub(shifted, shift); // exact
  Value r = fma(n, constant(-ln2High), x);
  return {bitsOf(shifted), fma(n, constant(-ln2Low), r)};
}

Value VectorCode::expOfReduced(Value r) {
  Value one = constant(1.0f);
  Value tail = polynomial(vector_math::expTail, r);
  return fma(fma(tail, r, one), r, one);
}

Value VectorCode::expInRange(Value x) {
  auto [biased, r] = reduce(x, exponentBias);
  return mul(expOfReduced(r), scaleOf(biased));
}

Value VectorCode::exp(Value x) {
  // Beyond these bounds the results are infinity and zero, by the scaling below. At the lower one,
  // 254 ln 2, the scale itself is zero: so are the masked scores of a softmax, whose powers would
  // else vanish in the last product, which takes a processor a hundred times as long as another.
  x = atLeast(atMost(x, 89.0f), -176.055f);
  // 2^n may be no float where the result still is one; two factors always are, and only
  // the second product can round.
  auto [biased, r] = reduce(x, 2 * exponentBias);
  Value half = shiftRight(biased, 1);
  Value rest = subInt(biased, half);
  return mul(mul(expOfReduced(r), scaleOf(half)), scaleOf(rest));
}

Value VectorCode::powerOfTwo(Value x) {
  // From the bound downwards the scale is zero.
  x = atLeast(x, -exponentBias);
  Value shift = constant(integerShift + exponentBias);
  Value shifted = add(x, shift);
  Value r = sub(x, sub(shifted, shift)); // exact
  return exp2OfReduced({bitsOf(shifted), r});
}

Value VectorCode::exp2OfReduced(Reduced reduced) {
  auto [biased, r] = reduced;
  Value power = fma(polynomial(vector_math::exp2Tail, r), r, constant(1.0f));
  return mul(power, scaleOf(biased));
}

Value VectorCode::expm1(Value x) {
  Value clamped = atLeast(atMost(x, 89.0f), -20.0f);
  // 2^n expm1(r) + (2^n - 1), all halved so that 2^128 does not occur.
  auto [biased, r] = reduce(clamped, exponentBias - 1);
  Value tail = polynomial(vector_math::expm1Tail, r);
  Value reduced = fma(tail, mul(r, r), r);
  Value scale = scaleOf(biased);
  Value halved = fma(scale, reduced, sub(scale, constant(0.5f)));
  // Zeros keep their sign.
  return select(equal(x, constant(0.0f)), x, mul(halved, constant(2.0f)));
}

std::pair<Value, Value> VectorCode::exponentOf(Value x) {
  Value bits = subInt(bitsOf(x), constant(sqrtHalfBits));
  return {shiftRight(bits, mantissaBits), bits};
}

Value VectorCode::logOfParts(Value exponent, Value f) {
  Value tail = polynomial(vector_math::logTail, f);
  Value low = fma(mul(f, f), tail, mul(exponent, constant(ln2Low)));
  // exponent * ln2High + f in two parts (T. J. Dekker, "A floating-point technique for
  // extending the available precision", 1971); the product, if not 0, is the larger.
  Value high = fma(exponent, constant(ln2High), f);
  Value lost = add(fma(exponent, constant(ln2High), negate(high)), f);
  return add(high, add(lost, low));
}

Value VectorCode::withPole(Value x, float pole, Value log) {
  Value atPole = constant(pole);
  Value outside = select(equal(x, atPole), constant(-infinity),
                         constant(std::numeric_limits<float>::quiet_NaN()));
  Value inside = select(equal(x, constant(infinity)), x, log);
  return select(less(atPole, x), inside, outside);
}

Value VectorCode::log(Value x) {
  // Denormals have no exponent of their own until they are scaled.
  Value denormal = less(x, constant(std::numeric_limits<float>::min()));
  Value scaled = select(denormal, mul(x, constant(0x1p23f)), x);
  Value correction = select(denormal, constant(-23.0f), constant(0.0f));
  auto [exponent, bits] = exponentOf(scaled);
  Value fraction = arith::AndIOp::create(b, bits, constant((1 << mantissaBits) - 1));
  Value mantissa = fromBits(arith::AddIOp::create(b, fraction, constant(sqrtHalfBits)));
  Value f = sub(mantissa, constant(1.0f));
  return withPole(x, 0.0f, logOfParts(add(toFloat(exponent), correction), f));
}

Value VectorCode::log1p(Value x) {
  // 1 + x rounded serves to find the exponent; f is made from x itself and rounds once.
  auto [exponent, bits] = exponentOf(add(x, constant(1.0f)));
  // 2^-exponent may be denormal, 4 times that is not.
  Value fourfold = scaleOf(subInt(constant(exponentBias + 2), exponent));
  Value scale = mul(fourfold, constant(0.25f));
  Value f = fma(x, scale, sub(scale, constant(1.0f)));
  Value log = withPole(x, -1.0f, logOfParts(toFloat(exponent), f));
  // Zeros keep their sign.
  return select(equal(x, constant(0.0f)), x, log);
}

Value VectorCode::tanh(Value x) {
  Value magnitude = absolute(x);
  Value squared = mul(magnitude, magnitude);
  Value near = fma(mul(squared, magnitude), polynomial(vector_math::tanhTail, squared), magnitude);
  // 1 - 2 / (exp(2 |x|) + 1), which is 1 from 9.02 on.
  Value bounded = atMost(magnitude, 10.0f);
  Value power = expInRange(add(bounded, bounded));
  Value one = constant(1.0f);
  Value far = sub(one, div(constant(2.0f), add(power, one)));
  Value isNear = less(magnitude, constant(vector_math::tanhNearBelow));
  return withSignOf(select(isNear, near, far), x);
}

Value VectorCode::erf(Value x) {
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

Value VectorCode::onePlusErf(Value x) {
  // 1 - erf(|x|) = 2^(|x| p(|x|)): nearer to zero than half an ULP of one from 3.92 on, and
  // zero, as the scale is, at the bound.
  Value magnitude = atMost(absolute(x), vector_math::bellVanishes);
  Value slope = polynomial(vector_math::bellSlope, magnitude);
  Value shift = constant(integerShift + exponentBias);
  Value shifted = fma(slope, magnitude, shift);
  Value r = fma(slope, magnitude, sub(shift, shifted));
  Value rest = exp2OfReduced({bitsOf(shifted), r});
  return select(less(x, constant(0.0f)), rest, sub(constant(2.0f), rest));
}

Value VectorCode::sineOfShort(Value x, int32_t quarters) {
  Value shift = constant(integerShift);
  Value shifted = fma(x, constant(twoOverPi), shift);
  Value n = sub(shifted, shift); // exact
  Value turned = arith::AddIOp::create(b, bitsOf(shifted), constant(quarters));
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
  Value odd = arith::AndIOp::create(b, turned, constant(1));
  Value isOdd = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, odd, constant(0));
  Value sign = arith::AndIOp::create(b, shiftLeft(turned, 30),
                                     constant(std::numeric_limits<int32_t>::min()));
  return fromBits(arith::XOrIOp::create(b, bitsOf(select(isOdd, cosine, sine)), sign));
}

Value VectorCode::branch(Value isEasy, Operation *function, llvm::function_ref<Value()> inVectors) {
  Value all = vector::ReductionOp::create(b, vector::CombiningKind::AND, isEasy);
  auto branch = scf::IfOp::create(b, type, all, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, inVectors());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, b.clone(*function)->getResult(0));
  return branch.getResult(0);
}

Value VectorCode::sine(Value x, int32_t quarters, Operation *function) {
  // Infinities and NaN are not short either.
  return branch(less(absolute(x), constant(longestAngle)), function, [&] {
    Value value = sineOfShort(x, quarters);
    // Zeros keep their sign.
    return quarters == 0 ? select(equal(x, constant(0.0f)), x, value) : value;
  });
}

Value VectorCode::tan(Value x, Operation *function) {
  return branch(less(absolute(x), constant(longestAngle)), function, [&] {
    Value quotient = div(sineOfShort(x, /*quarters=*/0), sineOfShort(x, /*quarters=*/1));
    return select(equal(x, constant(0.0f)), x, quotient);
  });
}

Value VectorCode::remainder(Value x, Value y, Operation *function) {
  Value quotient = math::TruncOp::create(b, div(x, y));
  // Of longer quotients the last digits are lost; those of zeros and infinities are none.
  Value isShort = arith::AndIOp::create(b, less(absolute(quotient), constant(longestQuotient)),
                                        less(absolute(y), constant(infinity)));
  return branch(isShort, function, [&] {
    // Exact, as is all that follows. Division may have rounded up to the next whole number.
    Value rest = fma(negate(quotient), y, x);
    Value isBeyond = less(mul(withSignOf(constant(1.0f), x), rest), constant(0.0f));
    Value back = add(rest, withSignOf(y, x));
    return withSignOf(select(isBeyond, back, rest), x);
  });
}

static bool isOne(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    value = broadcast.getSource();
  return matchPattern(value, m_OneFloat());
}

/// y, if `sum` is 1 + erf(y): the factor of an exact gelu, which is cheaper than erf alone.
static Value argumentOfOnePlusErf(arith::AddFOp sum) {
  for (auto [one, other] : {std::pair(sum.getLhs(), sum.getRhs()), {sum.getRhs(), sum.getLhs()}})
    if (auto erf = other.getDefiningOp<math::ErfOp>(); erf && isOne(one))
      return erf.getOperand();
  return {};
}

/// The value of `op` in vector arithmetic, or null when it is not one of ours.
static Value expand(Operation *op) {
  auto type = op->getNumResults() == 1 ? dyn_cast<VectorType>(op->getResult(0).getType()) : nullptr;
  if (!type || !type.getElementType().isF32())
    return {};
  VectorCode code(ImplicitLocOpBuilder(op->getLoc(), op), type);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp exp) { return code.exp(exp.getOperand()); })
      .Case([&](math::ExpM1Op expm1) { return code.expm1(expm1.getOperand()); })
      .Case([&](math::LogOp log) { return code.log(log.getOperand()); })
      .Case([&](math::Log1pOp log1p) { return code.log1p(log1p.getOperand()); })
      .Case([&](math::TanhOp tanh) { return code.tanh(tanh.getOperand()); })
      .Case([&](math::ErfOp erf) { return code.erf(erf.getOperand()); })
      .Case([&](arith::AddFOp sum) {
        Value argument = argumentOfOnePlusErf(sum);
        return argument ? code.onePlusErf(argument) : Value();
      })
      .Case([&](math::SinOp sin) { return code.sine(sin.getOperand(), /*quarters=*/0, sin); })
      .Case([&](math::CosOp cos) { return code.sine(cos.getOperand(), /*quarters=*/1, cos); })
      .Case([&](math::TanOp tan) { return code.tan(tan.getOperand(), tan); })
      .Case([&](arith::RemFOp rem) { return code.remainder(rem.getLhs(), rem.getRhs(), rem); })
      .Default(Value());
}

void weft::expandVectorMath(func::FuncOp kernel) {
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  // Backwards: a sum is met ahead of the erf that it may make needless.
  for (Operation *op : llvm::reverse(ops)) {
    if (isOpTriviallyDead(op)) {
      op->erase();
    } else if (Value expanded = expand(op)) {
      op->getResult(0).replaceAllUsesWith(expanded);
      op->erase();
    }
  }
}

Value weft::emitPowerOfTwo(OpBuilder &builder, Location loc, Value x) {
  VectorCode code(ImplicitLocOpBuilder(loc, builder), cast<VectorType>(x.getType()));
  return code.powerOfTwo(x);
}
