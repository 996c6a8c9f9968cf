// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/VectorMath/Avx512Math.h"
#include "compiler/Kernels/VectorMath/VectorMathTables.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

constexpr int64_t lanes = 16;
constexpr float integerShift = 0x1.8p23f; // adding it rounds to the nearest integer
constexpr float log2OfE = 0x1.715476p+0f;
// ln 2 in two parts; the first is a multiple of 2^-15.
constexpr float ln2High = 0x1.62e4p-1f, ln2Low = 0x1.7f7d1cp-20f;

Value Avx512Math::call(StringRef name, ValueRange operands, bool rounds) {
  SmallVector<Value> all(operands);
  all.push_back(arith::ConstantIntOp::create(b, -1, lanes));
  constexpr int64_t currentRounding = 4;
  if (rounds)
    all.push_back(arith::ConstantIntOp::create(b, currentRounding, 32));
  auto full = b.getStringAttr("llvm.x86.avx512." + name);
  return LLVM::CallIntrinsicOp::create(b, type, full, all).getResult(0);
}

Value Avx512Math::exp(Value x) {
  // Beyond these bounds exp is infinite or zero. Zero is selected, as a scaling that underflows is
  // a hundred times slower on some processors.
  x = atMost(x, 89.0f);
  Value shift = constant(integerShift);
  Value n = sub(fma(x, constant(log2OfE), shift), shift);
  Value r = fma(n, constant(-ln2Low), fma(n, constant(-ln2High), x));
  Value one = constant(1.0f);
  Value power = fma(fma(polynomial(vector_math::expTail, r), r, one), r, one);
  return select(less(x, constant(-104.0f)), constant(0.0f), scaled(power, n));
}

Avx512Math::Parts Avx512Math::partsOf(Value x) {
  // vgetmant: mantissas in [1, 2), NaN for negative numbers.
  constexpr int64_t wholeInterval = 0, nanBelowZero = 2 << 2;
  Value how = arith::ConstantIntOp::create(b, wholeInterval | nanBelowZero, 32);
  Value mantissa = call("mask.getmant.ps.512", {x, how, x});
  Value index = shiftRight(bitsOf(mantissa), mantissaBits() - 4);
  Value rest =
      fma(mantissa, pick(vector_math::mantissaReciprocals, index), constant(-1.0f)); // nearly exact
  return {call("mask.getexp.ps.512", {x, x}), index, rest};
}

// The exponents of zero and infinity are infinite, and so are the sums.

Value Avx512Math::log(Value x) {
  auto [exponent, index, rest] = partsOf(x);
  Value high = fma(exponent, constant(ln2High), pick(vector_math::logOfReciprocalsHigh, index));
  Value low = fma(exponent, constant(ln2Low), pick(vector_math::logOfReciprocalsLow, index));
  low = fma(mul(rest, rest), polynomial(vector_math::logShortTail, rest), low);
  return add(high, add(rest, low));
}

Value Avx512Math::log2(Value x) {
  constexpr float log2OfELow = 0x1.4ae0c0p-26f;
  auto [exponent, index, rest] = partsOf(x);
  Value high = add(exponent, pick(vector_math::log2OfReciprocalsHigh, index));
  Value low = fma(rest, constant(log2OfELow), pick(vector_math::log2OfReciprocalsLow, index));
  low = fma(mul(rest, rest), polynomial(vector_math::log2ShortTail, rest), low);
  return add(high, fma(rest, constant(log2OfE), low));
}

Value Avx512Math::tanh(Value x) {
  // With h = (exp(2 |x|) - 1) / 2 = 2^n (half + 1/2) - 1/2, tanh is h / (h + 1), which is 1 from
  // 9.02 on. ln 2 is one constant here: its error matters less the larger n is.
  constexpr float ln2 = 0x1.62e43p-1f;
  Value magnitude = atMost(absolute(x), 9.1f);
  Value shift = constant(integerShift + 127);
  Value shifted = fma(magnitude, constant(2 * log2OfE), shift);
  Value r = fma(sub(shifted, shift), constant(-ln2 / 2), magnitude);
  Value half = fma(polynomial(vector_math::halfExpm1Tail, r), mul(r, r), r);
  Value scale = scaleOf(bitsOf(shifted));
  Value powerLessOne = fma(scale, half, fma(scale, constant(0.5f), constant(-0.5f)));
  Value inverse = reciprocal(add(powerLessOne, constant(1.0f)));
  Value quotient = mul(powerLessOne, inverse);
  // One correction step, with the residual of the unrounded divisor.
  Value lacks = fma(negate(quotient), powerLessOne, sub(powerLessOne, quotient));
  return withSignOf(fma(lacks, inverse, quotient), x);
}

Value Avx512Math::sqrt(Value x, Operation *function) {
  // Positive normal numbers for which the residual root^2 - x is a normal number too.
  constexpr int64_t lowest = int64_t(127 - 100) << 23, highest = int64_t(255) << 23;
  Value isEasy = arith::CmpIOp::create(
      b, arith::CmpIPredicate::ult, subInt(bitsOf(x), integer(lowest)), integer(highest - lowest));
  return branch(isEasy, function, [&] {
    Value inverse = call("rsqrt14.ps.512", {x, x}, /*rounds=*/false);
    Value root = mul(x, inverse);
    // The residual is exact (FMA), so that only the last addition rounds.
    Value lacks = fma(negate(root), root, x);
    return fma(lacks, mul(inverse, constant(0.5f)), root);
  });
}

Value weft::expandForAvx512(Operation *op) {
  auto type = op->getNumResults() == 1 ? dyn_cast<VectorType>(op->getResult(0).getType()) : nullptr;
  if (!type || !type.getElementType().isF32() || type.getNumElements() != lanes)
    return {};
  Avx512Math functions(ImplicitLocOpBuilder(op->getLoc(), op), type);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp exp) { return functions.exp(exp.getOperand()); })
      .Case([&](math::LogOp log) { return functions.log(log.getOperand()); })
      .Case([&](math::Log2Op log) { return functions.log2(log.getOperand()); })
      .Case([&](math::TanhOp tanh) { return functions.tanh(tanh.getOperand()); })
      .Case([&](math::SqrtOp sqrt) { return functions.sqrt(sqrt.getOperand(), op); })
      .Default(Value());
}
