// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar forms of the elementwise ops and of the reductions, with PyTorch's semantics.
#include "compiler/Lowering/ScalarMath.h"
#include "compiler/Lowering/Philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

Type weft::computeType(Type element) {
  if (element.isUnsignedInteger())
    return IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
  if (element.isF16() || element.isBF16())
    return Float32Type::get(element.getContext());
  return element;
}

Type weft::storageElementType(Type element) {
  if (element.isInteger(1) || element.isUnsignedInteger(8))
    return IntegerType::get(element.getContext(), 8);
  return element;
}

bool weft::hasUnsignedElements(Type element) {
  return element.isInteger(1) || element.isUnsignedInteger();
}

static Value constant(OpBuilder &b, Location loc, Type type, double value) {
  TypedAttr attr = isa<FloatType>(type) ? TypedAttr(b.getFloatAttr(type, value))
                                        : TypedAttr(b.getIntegerAttr(type, int64_t(value)));
  return arith::ConstantOp::create(b, loc, attr);
}

Value weft::decode(OpBuilder &b, Location loc, Value stored, Type element) {
  if (element.isInteger(1))
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, stored,
                                 constant(b, loc, stored.getType(), 0));
  if (computeType(element) != stored.getType())
    return arith::ExtFOp::create(b, loc, computeType(element), stored);
  return stored;
}

Value weft::encode(OpBuilder &b, Location loc, Value computed, Type element) {
  Type storage = storageElementType(element);
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b, loc, storage, computed);
  if (computed.getType() != storage)
    return arith::TruncFOp::create(b, loc, storage, computed);
  return computed;
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

static Value equals(OpBuilder &b, Location loc, Value value, int64_t constantValue) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, value,
                               constant(b, loc, value.getType(), constantValue));
}

/// Quotient or remainder that never traps: the padding of tiled tensors holds zeros, and the
/// smallest integer divided by -1 overflows. The values of such elements are arbitrary.
static Value emitIntegerDivision(OpBuilder &b, Location loc, Value lhs, Value rhs, bool isUnsigned,
                                 bool remainder) {
  Type type = lhs.getType();
  APInt known;
  bool harmless = matchPattern(rhs, m_ConstantInt(&known)) && !known.isZero() &&
                  (isUnsigned || !known.isAllOnes());
  Value safe = rhs, minusOne;
  if (!harmless) {
    Value bad = equals(b, loc, rhs, 0);
    if (!isUnsigned) {
      minusOne = equals(b, loc, rhs, -1);
      bad = arith::OrIOp::create(b, loc, bad, minusOne);
    }
    safe = arith::SelectOp::create(b, loc, bad, constant(b, loc, type, 1), rhs);
  }
  if (remainder) {
    // -1 is replaced by 1, which has the same remainder, 0.
    if (isUnsigned)
      return arith::RemUIOp::create(b, loc, lhs, safe);
    return arith::RemSIOp::create(b, loc, lhs, safe);
  }
  if (isUnsigned)
    return arith::DivUIOp::create(b, loc, lhs, safe);
  Value quotient = arith::DivSIOp::create(b, loc, lhs, safe);
  if (!minusOne)
    return quotient;
  Value negated = arith::SubIOp::create(b, loc, constant(b, loc, type, 0), lhs);
  return arith::SelectOp::create(b, loc, minusOne, negated, quotient);
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

template <typename FloatOp, typename IntOp>
static Value byType(OpBuilder &b, Location loc, ValueRange x) {
  if (isa<FloatType>(x[0].getType()))
    return FloatOp::create(b, loc, x);
  return IntOp::create(b, loc, x);
}

static Value emitFma(OpBuilder &b, Location loc, ValueRange x, bool isBool) {
  if (isa<FloatType>(x[0].getType()))
    return math::FmaOp::create(b, loc, x);
  if (isBool)
    return arith::OrIOp::create(b, loc, arith::AndIOp::create(b, loc, x[0], x[1]), x[2]);
  return arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, x[0], x[1]), x[2]);
}

static Value emitNeg(OpBuilder &b, Location loc, Value x) {
  if (isa<FloatType>(x.getType()))
    return arith::NegFOp::create(b, loc, x);
  return arith::SubIOp::create(b, loc, constant(b, loc, x.getType(), 0), x);
}

static Value emitNot(OpBuilder &b, Location loc, Value x) {
  return arith::XOrIOp::create(b, loc, x, constant(b, loc, x.getType(), -1));
}

/// (0 < x) - (x < 0), so that NaN gives 0, as in PyTorch.
static Value emitSign(OpBuilder &b, Location loc, Value x, bool isUnsigned) {
  Type type = x.getType();
  Value zero = constant(b, loc, type, 0), one = constant(b, loc, type, 1);
  if (auto floating = dyn_cast<FloatType>(type)) {
    Value above = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, zero);
    Value below = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, zero);
    Value negative = arith::SelectOp::create(b, loc, below, constant(b, loc, type, -1), zero);
    return arith::SelectOp::create(b, loc, above, one, negative);
  }
  if (isUnsigned)
    return arith::MinUIOp::create(b, loc, x, one);
  Value clamped = arith::MinSIOp::create(b, loc, x, one);
  return arith::MaxSIOp::create(b, loc, clamped, constant(b, loc, type, -1));
}

/// For f64 a separate op, so that vector code can correct the rounding errors of root and quotient.
static Value emitRsqrt(OpBuilder &b, Location loc, Value x) {
  if (x.getType().isF64())
    return math::RsqrtOp::create(b, loc, x);
  Value one = constant(b, loc, x.getType(), 1);
  return arith::DivFOp::create(b, loc, one, math::SqrtOp::create(b, loc, x));
}

/// With t = exp(-|x|): 1 / (1 + t), or t / (1 + t) for negative x, where 1 / (1 + exp(-x)) would
/// lose digits and overflow. The rounding error of 1 + t is corrected to first order: q - q * error
/// / (1 + t).
static Value emitSigmoid(OpBuilder &b, Location loc, Value x) {
  Value magnitude = math::AbsFOp::create(b, loc, x);
  Value t = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, magnitude));
  Value one = constant(b, loc, x.getType(), 1);
  Value zero = constant(b, loc, x.getType(), 0);
  Value sum = arith::AddFOp::create(b, loc, one, t);
  Value error = arith::SubFOp::create(b, loc, t, arith::SubFOp::create(b, loc, sum, one));
  Value negative = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, zero);
  Value numerator = arith::SelectOp::create(b, loc, negative, t, one);
  Value quotient = arith::DivFOp::create(b, loc, numerator, sum);
  // 1 / (1 + t) is the quotient for positive x, and its complement for negative x.
  Value complement = arith::SubFOp::create(b, loc, one, quotient);
  Value inverse = arith::SelectOp::create(b, loc, negative, complement, quotient);
  Value scaled = arith::MulFOp::create(b, loc, quotient, arith::NegFOp::create(b, loc, error));
  return math::FmaOp::create(b, loc, scaled, inverse, quotient);
}

static Value emitCmp(OpBuilder &b, Location loc, ComparePredicate predicate, Value lhs, Value rhs,
                     bool isUnsigned) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  struct Row {
    F floating;
    I sign, unsign;
  };
  auto row = [&]() -> Row {
    switch (predicate) {
    case ComparePredicate::eq:
      return {F::OEQ, I::eq, I::eq};
    case ComparePredicate::ne:
      return {F::UNE, I::ne, I::ne};
    case ComparePredicate::lt:
      return {F::OLT, I::slt, I::ult};
    case ComparePredicate::le:
      return {F::OLE, I::sle, I::ule};
    case ComparePredicate::gt:
      return {F::OGT, I::sgt, I::ugt};
    case ComparePredicate::ge:
      return {F::OGE, I::sge, I::uge};
    }
    llvm_unreachable("unknown predicate");
  }();
  if (isa<FloatType>(lhs.getType()))
    return arith::CmpFOp::create(b, loc, row.floating, lhs, rhs);
  return arith::CmpIOp::create(b, loc, isUnsigned ? row.unsign : row.sign, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static Value emitFloatToInt(OpBuilder &b, Location loc, Value x, IntegerType to) {
  // What an integer of 32 or 64 bits does not hold, and NaN, is its least one, as the processor has
  // it and eager execution with it; in LLVM that is poison, which spoils what a constant goes into.
  // Narrow integers wrap around from 32 bits: -1.0 becomes 255.
  IntegerType wide = to.getWidth() < 32 ? b.getI32Type() : to;
  double bound = std::ldexp(1.0, wide.getWidth() - 1);
  Value low = constant(b, loc, x.getType(), -bound);
  Value high = constant(b, loc, x.getType(), bound);
  Value held = arith::AndIOp::create(b, loc, emitCmp(b, loc, ComparePredicate::ge, x, low, false),
                                     emitCmp(b, loc, ComparePredicate::lt, x, high, false));
  Value safe = arith::SelectOp::create(b, loc, held, x, low);
  Value made = arith::FPToSIOp::create(b, loc, wide, safe);
  return wide == to ? made : arith::TruncIOp::create(b, loc, to, made);
}

static Value emitConvert(OpBuilder &b, Location loc, Value x, Type from, Type to) {
  Type source = x.getType(), result = computeType(to);
  if (source == result)
    return x;
  if (to.isInteger(1)) {
    Value zero = constant(b, loc, source, 0);
    return emitCmp(b, loc, ComparePredicate::ne, x, zero, false);
  }
  auto fromInt = dyn_cast<IntegerType>(source), toInt = dyn_cast<IntegerType>(result);
  if (fromInt && toInt) {
    if (toInt.getWidth() < fromInt.getWidth())
      return arith::TruncIOp::create(b, loc, toInt, x);
    if (hasUnsignedElements(from))
      return arith::ExtUIOp::create(b, loc, toInt, x);
    return arith::ExtSIOp::create(b, loc, toInt, x);
  }
  if (toInt)
    return emitFloatToInt(b, loc, x, toInt);
  if (fromInt) {
    if (hasUnsignedElements(from))
      return arith::UIToFPOp::create(b, loc, result, x);
    return arith::SIToFPOp::create(b, loc, result, x);
  }
  if (source.getIntOrFloatBitWidth() < result.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, loc, result, x);
  return arith::TruncFOp::create(b, loc, result, x);
}

/// By repeated squaring, with the type's wrap-around arithmetic. Powers with negative exponents are
/// integers only for 1 and -1; all others are 0.
static Value emitIntegerPower(OpBuilder &b, Location loc, Value base, Value exponent, bool noSign) {
  auto type = cast<IntegerType>(base.getType());
  auto number = [&](const APInt &value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  auto is = [&](Value value, Value other) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, value, other);
  };
  unsigned width = type.getWidth();
  Value zero = number(APInt(width, 0)), one = number(APInt(width, 1));
  Value power = one, square = base;
  for (unsigned bit = 0, bits = noSign ? width : width - 1; bit < bits; ++bit) {
    Value mask = number(APInt::getOneBitSet(width, bit));
    Value counts = is(arith::AndIOp::create(b, loc, exponent, mask), mask);
    Value product = arith::MulIOp::create(b, loc, power, square);
    power = arith::SelectOp::create(b, loc, counts, product, power);
    if (bit + 1 < bits)
      square = arith::MulIOp::create(b, loc, square, square);
  }
  if (noSign)
    return power;
  Value isUnit =
      arith::OrIOp::create(b, loc, is(base, one), is(base, number(APInt::getAllOnes(width))));
  Value isWhole = arith::OrIOp::create(
      b, loc, isUnit, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, exponent, zero));
  return arith::SelectOp::create(b, loc, isWhole, power, zero);
}

Value weft::emitScalar(OpBuilder &b, Operation *op, ValueRange x) {
  Location loc = op->getLoc();
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  bool noSign = hasUnsignedElements(element), isBool = element.isInteger(1);
  auto unary = [&]<typename GraphOp, typename ScalarOp>() {
    return [&](GraphOp) -> Value { return ScalarOp::create(b, loc, x[0]); };
  };
  return TypeSwitch<Operation *, Value>(op)
      .Case(unary.operator()<CeilOp, math::CeilOp>())
      .Case(unary.operator()<FloorOp, math::FloorOp>())
      .Case(unary.operator()<RoundEvenOp, math::RoundEvenOp>())
      .Case(unary.operator()<TruncOp, math::TruncOp>())
      .Case(unary.operator()<ExpOp, math::ExpOp>())
      .Case(unary.operator()<Exp2Op, math::Exp2Op>())
      .Case(unary.operator()<Expm1Op, math::ExpM1Op>())
      .Case(unary.operator()<LogOp, math::LogOp>())
      .Case(unary.operator()<Log2Op, math::Log2Op>())
      .Case(unary.operator()<Log10Op, math::Log10Op>())
      .Case(unary.operator()<Log1pOp, math::Log1pOp>())
      .Case(unary.operator()<SqrtOp, math::SqrtOp>())
      .Case(unary.operator()<SinOp, math::SinOp>())
      .Case(unary.operator()<CosOp, math::CosOp>())
      .Case(unary.operator()<TanOp, math::TanOp>())
      .Case(unary.operator()<AsinOp, math::AsinOp>())
      .Case(unary.operator()<AcosOp, math::AcosOp>())
      .Case(unary.operator()<AtanOp, math::AtanOp>())
      .Case(unary.operator()<SinhOp, math::SinhOp>())
      .Case(unary.operator()<CoshOp, math::CoshOp>())
      .Case(unary.operator()<TanhOp, math::TanhOp>())
      .Case(unary.operator()<AsinhOp, math::AsinhOp>())
      .Case(unary.operator()<AcoshOp, math::AcoshOp>())
      .Case(unary.operator()<AtanhOp, math::AtanhOp>())
      .Case(unary.operator()<ErfOp, math::ErfOp>())
      .Case(unary.operator()<ErfcOp, math::ErfcOp>())
      .Case([&](NegOp) { return emitNeg(b, loc, x[0]); })
      .Case([&](AbsOp) { return noSign ? x[0] : byType<math::AbsFOp, math::AbsIOp>(b, loc, x); })
      .Case([&](SignOp) { return emitSign(b, loc, x[0], noSign); })
      .Case([&](NotOp) { return emitNot(b, loc, x[0]); })
      .Case([&](RsqrtOp) { return emitRsqrt(b, loc, x[0]); })
      .Case([&](SigmoidOp) { return emitSigmoid(b, loc, x[0]); })
      .Case([&](AddOp) -> Value {
        return isBool ? arith::OrIOp::create(b, loc, x).getResult()
                      : byType<arith::AddFOp, arith::AddIOp>(b, loc, x);
      })
      .Case([&](SubOp) { return byType<arith::SubFOp, arith::SubIOp>(b, loc, x); })
      .Case([&](MulOp) { return byType<arith::MulFOp, arith::MulIOp>(b, loc, x); })
      .Case([&](FmaOp) { return emitFma(b, loc, x, isBool); })
      .Case([&](PhiloxOp) { return emitPhilox(b, loc, x[0], x[1], x[2]); })
      .Case([&](DivOp) -> Value {
        if (isa<FloatType>(x[0].getType()))
          return arith::DivFOp::create(b, loc, x);
        return emitIntegerDivision(b, loc, x[0], x[1], noSign, /*remainder=*/false);
      })
      .Case([&](RemOp) -> Value {
        if (isa<FloatType>(x[0].getType()))
          return arith::RemFOp::create(b, loc, x);
        return emitIntegerDivision(b, loc, x[0], x[1], noSign, /*remainder=*/true);
      })
      .Case([&](PowOp) -> Value {
        if (isa<FloatType>(x[0].getType()))
          return math::PowFOp::create(b, loc, x);
        return emitIntegerPower(b, loc, x[0], x[1], noSign);
      })
      .Case([&](CopySignOp) { return math::CopySignOp::create(b, loc, x); })
      .Case([&](Atan2Op) { return math::Atan2Op::create(b, loc, x); })
      .Case([&](MaxOp) { return emitCombine(b, loc, ReduceKind::max, x[0], x[1], noSign); })
      .Case([&](MinOp) { return emitCombine(b, loc, ReduceKind::min, x[0], x[1], noSign); })
      .Case([&](AndOp) { return arith::AndIOp::create(b, loc, x); })
      .Case([&](OrOp) { return arith::OrIOp::create(b, loc, x); })
      .Case([&](XorOp) { return arith::XOrIOp::create(b, loc, x); })
      .Case([&](CmpOp cmp) { return emitCmp(b, loc, cmp.getPredicate(), x[0], x[1], noSign); })
      .Case([&](SelectOp) { return arith::SelectOp::create(b, loc, x[0], x[1], x[2]); })
      .Case([&](ConvertOp convert) {
        return emitConvert(b, loc, x[0], element, convert.getType().getElementType());
      })
      .Default([](Operation *) { return Value(); });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value weft::emitCombine(OpBuilder &b, Location loc, ReduceKind kind, Value lhs, Value rhs,
                        bool isUnsigned) {
  SmallVector<Value> x{lhs, rhs};
  bool isFloat = isa<FloatType>(lhs.getType());
  // The sign of a zero result depends on the order, in PyTorch as well.
  constexpr auto eitherZero = arith::FastMathFlags::nsz;
  switch (kind) {
  case ReduceKind::sum:
    return byType<arith::AddFOp, arith::AddIOp>(b, loc, x);
  case ReduceKind::prod:
    return byType<arith::MulFOp, arith::MulIOp>(b, loc, x);
  case ReduceKind::max:
    if (isFloat)
      return arith::MaximumFOp::create(b, loc, lhs, rhs, eitherZero);
    return isUnsigned ? arith::MaxUIOp::create(b, loc, x).getResult()
                      : arith::MaxSIOp::create(b, loc, x).getResult();
  case ReduceKind::min:
    if (isFloat)
      return arith::MinimumFOp::create(b, loc, lhs, rhs, eitherZero);
    return isUnsigned ? arith::MinUIOp::create(b, loc, x).getResult()
                      : arith::MinSIOp::create(b, loc, x).getResult();
  case ReduceKind::any:
    return arith::OrIOp::create(b, loc, x);
  case ReduceKind::all:
    return arith::AndIOp::create(b, loc, x);
  }
  llvm_unreachable("unknown reduction");
}

static APInt integerIdentity(ReduceKind kind, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::any:
    return APInt::getZero(width);
  case ReduceKind::prod:
  case ReduceKind::all:
    return APInt(width, 1);
  case ReduceKind::max:
    return hasUnsignedElements(element) ? APInt::getZero(width) : APInt::getSignedMinValue(width);
  case ReduceKind::min:
    return hasUnsignedElements(element) ? APInt::getMaxValue(width)
                                        : APInt::getSignedMaxValue(width);
  }
  llvm_unreachable("unknown reduction");
}

TypedAttr weft::reduceIdentity(OpBuilder &b, ReduceKind kind, Type element) {
  if (auto type = dyn_cast<FloatType>(element)) {
    if (kind == ReduceKind::sum || kind == ReduceKind::prod)
      return b.getFloatAttr(type, kind == ReduceKind::prod);
    return b.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics(), kind == ReduceKind::max));
  }
  Type storage = storageElementType(element);
  return b.getIntegerAttr(storage,
                          integerIdentity(kind, element).zext(storage.getIntOrFloatBitWidth()));
}
