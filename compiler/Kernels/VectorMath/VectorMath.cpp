// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expands elementary functions of f32 and f64 vectors. Each reduces its argument to a short
// interval, evaluates a polynomial there (VectorMathTables.h, DoubleMathTables.h) and undoes the
// reduction, for all lanes alike: branches become selects. The reductions are those of W. J. Cody
// and W. Waite, "Software Manual for the Elementary Functions", 1980.
#include "compiler/Kernels/VectorMath/VectorMath.h"
#include "compiler/Kernels/VectorMath/Avx512Math.h"
#include "compiler/Kernels/VectorMath/DoubleExponentials.h"
#include "compiler/Kernels/VectorMath/DoubleLogarithms.h"
#include "compiler/Kernels/VectorMath/DoublePower.h"
#include "compiler/Kernels/VectorMath/DoubleRoots.h"
#include "compiler/Kernels/VectorMath/DoubleTrigonometry.h"
#include "compiler/Kernels/VectorMath/VectorExponentials.h"
#include "compiler/Kernels/VectorMath/VectorLogarithms.h"
#include "compiler/Kernels/VectorMath/VectorPower.h"
#include "compiler/Kernels/VectorMath/VectorTrigonometry.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <array>
#include <limits>

using namespace mlir;
using namespace weft;

/// Of the vectors whose lanes instructions permute as an index says, as a table.
constexpr int64_t permutedLanes = 16;
constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {
class VectorRemainder : private VectorArithmetic {
public:
  VectorRemainder(ImplicitLocOpBuilder builder, VectorType type)
      : VectorArithmetic(builder, type) {}

  /// x - trunc(x / y) y, as the library's `function` computes it.
  Value of(Value x, Value y, Operation *function);
};
} // namespace

Value VectorRemainder::of(Value x, Value y, Operation *function) {
  Value quotient = truncate(div(x, y));
  // Larger quotients lose their last digits; those with zero or infinity are NaN or infinite.
  Value isShort = both(less(absolute(quotient), constant(format.longestQuotient)),
                       less(absolute(y), constant(infinity)));
  return branch(isShort, function, [&] {
    // Exact, as are the following steps. The division may have rounded up to the next integer.
    Value rest = fma(negate(quotient), y, x);
    Value isBeyond = less(mul(withSignOf(constant(1.0f), x), rest), constant(0.0f));
    Value back = add(rest, withSignOf(y, x));
    return withSignOf(select(isBeyond, back, rest), x);
  });
}

/// The value of a splat constant, or nothing.
static std::optional<double> numberIn(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    value = broadcast.getSource();
  APFloat number(0.0);
  return matchPattern(value, m_ConstantFloat(&number)) ? std::optional(number.convertToDouble())
                                                       : std::nullopt;
}

/// The operands of a commutative op in both orders.
template <typename OpT> static std::array<std::pair<Value, Value>, 2> eitherWay(OpT op) {
  Value lhs = op.getLhs(), rhs = op.getRhs();
  return {std::pair(lhs, rhs), std::pair(rhs, lhs)};
}

/// The OpT that `sum` adds to one, or null.
template <typename OpT> static OpT addedToOne(arith::AddFOp sum) {
  for (auto [one, other] : eitherWay(sum))
    if (auto op = other.getDefiningOp<OpT>(); op && numberIn(one) == 1.0)
      return op;
  return {};
}

/// 1 + erf(y) and 1 + tanh(y), as in gelu, are cheaper than erf and tanh; unless the latter is
/// needed too, as for gradients.
static Value expandSum(arith::AddFOp sum, VectorExponentials &exponentials) {
  if (auto erf = addedToOne<math::ErfOp>(sum))
    return exponentials.onePlusErf(erf.getOperand());
  if (auto tanh = addedToOne<math::TanhOp>(sum); tanh && tanh->hasOneUse())
    return exponentials.onePlusTanh(tanh.getOperand());
  return {};
}

/// `value` as a product of another value and a constant.
static std::pair<Value, double> asMultiple(Value value) {
  if (auto quotient = value.getDefiningOp<arith::DivFOp>())
    if (std::optional<double> divisor = numberIn(quotient.getRhs()))
      return {quotient.getLhs(), 1 / *divisor};
  if (auto product = value.getDefiningOp<arith::MulFOp>())
    for (auto [other, factor] : eitherWay(product))
      if (std::optional<double> number = numberIn(factor))
        return {other, *number};
  return {value, 1.0};
}

/// y (1 + erf(r y)), r > 0, as in gelu; null without table permutations. Ratios far from one are
/// left out, as intermediate products could overflow.
static Value expandProduct(arith::MulFOp product, VectorExponentials &exponentials) {
  for (auto [factor, other] : eitherWay(product)) {
    auto sum = other.getDefiningOp<arith::AddFOp>();
    auto erf = sum && sum->hasOneUse() ? addedToOne<math::ErfOp>(sum) : math::ErfOp();
    if (!erf)
      continue;
    auto [x, outside] = asMultiple(factor);
    auto [y, inside] = asMultiple(erf.getOperand());
    double ratio = inside / outside;
    if (x == y && outside > 0 && ratio > 0x1p-20 && ratio < 0x1p20)
      return exponentials.timesOnePlusErf(factor, ratio);
  }
  return {};
}

/// Functions common to f32 and f64, as members of the respective classes.
template <typename ExponentialsT, typename LogarithmsT, typename AnglesT, typename PowerT>
static Value expandFunction(Operation *op, VectorType type) {
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  ExponentialsT exponentials(builder, type);
  LogarithmsT logarithms(builder, type);
  AnglesT angles(builder, type);
  PowerT powers(builder, type);
  auto argument = [&](unsigned number = 0) { return op->getOperand(number); };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return exponentials.exp(argument()); })
      .Case([&](math::Exp2Op) { return exponentials.exp2(argument()); })
      .Case([&](math::ExpM1Op) { return exponentials.expm1(argument()); })
      .Case([&](math::SinhOp) { return exponentials.sinh(argument()); })
      .Case([&](math::CoshOp) { return exponentials.cosh(argument()); })
      .Case([&](math::TanhOp) { return exponentials.tanh(argument()); })
      .Case([&](math::ErfOp) { return exponentials.erf(argument()); })
      .Case([&](math::ErfcOp) { return exponentials.erfc(argument()); })
      .Case([&](math::LogOp) { return logarithms.log(argument()); })
      .Case([&](math::Log2Op) { return logarithms.log2(argument()); })
      .Case([&](math::Log10Op) { return logarithms.log10(argument()); })
      .Case([&](math::Log1pOp) { return logarithms.log1p(argument()); })
      .Case([&](math::AsinhOp) { return logarithms.asinh(argument()); })
      .Case([&](math::AcoshOp) { return logarithms.acosh(argument()); })
      .Case([&](math::AtanhOp) { return logarithms.atanh(argument()); })
      .Case([&](math::SinOp) { return angles.sine(argument(), /*quarters=*/0, op); })
      .Case([&](math::CosOp) { return angles.sine(argument(), /*quarters=*/1, op); })
      .Case([&](math::TanOp) { return angles.tan(argument(), op); })
      .Case([&](math::AsinOp) { return angles.asin(argument()); })
      .Case([&](math::AcosOp) { return angles.acos(argument()); })
      .Case([&](math::AtanOp) { return angles.atan(argument()); })
      .Case([&](math::Atan2Op) { return angles.atan2(argument(0), argument(1)); })
      .Case([&](math::PowFOp) { return powers.pow(argument(0), argument(1)); })
      .Case([&](arith::RemFOp) {
        return VectorRemainder(builder, type).of(argument(0), argument(1), op);
      })
      .Default(Value());
}

/// Expands `op` into vector arithmetic; null if it is not supported.
static Value expand(Operation *op) {
  auto type = op->getNumResults() == 1 ? dyn_cast<VectorType>(op->getResult(0).getType()) : nullptr;
  if (!type)
    return {};
  if (isa<math::RsqrtOp>(op) && type.getElementType().isF64())
    return DoubleRoots(ImplicitLocOpBuilder(op->getLoc(), op), type).rsqrt(op->getOperand(0));
  if (type.getElementType().isF64())
    return expandFunction<DoubleExponentials, DoubleLogarithms, DoubleTrigonometry, DoublePower>(
        op, type);
  if (!type.getElementType().isF32())
    return {};
  VectorExponentials exponentials(ImplicitLocOpBuilder(op->getLoc(), op), type);
  if (auto sum = dyn_cast<arith::AddFOp>(op))
    return expandSum(sum, exponentials);
  if (auto product = dyn_cast<arith::MulFOp>(op))
    return expandProduct(product, exponentials);
  return expandFunction<VectorExponentials, VectorLogarithms, VectorTrigonometry, VectorPower>(
      op, type);
}

/// `value` in the first lanes of `type`, and what is benign in others.
static Value widen(OpBuilder &builder, Value value, VectorType type) {
  auto own = dyn_cast<VectorType>(value.getType());
  if (!own)
    return vector::BroadcastOp::create(builder, value.getLoc(), type, value);
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
    lanes.push_back(lane % own.getNumElements());
  return vector::ShuffleOp::create(builder, value.getLoc(), value, value, lanes);
}

/// Expands an op on a scalar or on fewer than `lanes` lanes among as many, so that a number has one
/// value wherever it is. That of an f64 does not depend on lanes, nor does that of an f32 without
/// table permutations; a square root is exact.
static Value expandNarrow(Operation *op, int64_t lanes) {
  if (op->getNumResults() != 1 || isa<math::SqrtOp>(op) ||
      !(isa<math::MathDialect>(op->getDialect()) || isa<arith::RemFOp>(op)))
    return {};
  Type own = op->getResult(0).getType(), element = getElementTypeOrSelf(own);
  auto narrow = dyn_cast<VectorType>(own);
  bool varies = element.isF32() && lanes == permutedLanes;
  if (!(element.isF32() || element.isF64()) ||
      (narrow && (!varies || narrow.getRank() != 1 || narrow.getNumElements() >= lanes)))
    return {};
  OpBuilder builder(op);
  auto type = VectorType::get({varies ? lanes : 1}, element);
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, widen(builder, operand, type));
  Operation *wide = builder.clone(*op, mapping);
  wide->getResult(0).setType(type);
  Value value = expandForAvx512(wide);
  if (!value)
    value = expand(wide);
  if (value && narrow)
    value =
        vector::ExtractStridedSliceOp::create(builder, op->getLoc(), value, ArrayRef<int64_t>{0},
                                              narrow.getShape(), ArrayRef<int64_t>{1});
  else if (value)
    value = vector::ExtractOp::create(builder, op->getLoc(), value, 0);
  wide->erase();
  return value;
}

void weft::expandVectorMath(func::FuncOp kernel, int64_t lanes) {
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  // Backwards, to visit a sum before the erf that it may make dead, and an op before those inside
  // it.
  for (size_t i = ops.size(); i-- > 0;) {
    Operation *op = ops[i];
    if (isOpTriviallyDead(op)) {
      size_t count = 0; // of itself and those inside it, which go with it
      op->walk([&](Operation *) { ++count; });
      op->erase();
      i -= count - 1;
      continue;
    }
    Value expanded = expandNarrow(op, lanes);
    if (!expanded)
      expanded = expandForAvx512(op);
    if (!expanded)
      expanded = expand(op);
    if (expanded) {
      op->getResult(0).replaceAllUsesWith(expanded);
      op->erase();
    }
  }
}

Value weft::emitPowerOfTwo(OpBuilder &builder, Location loc, Value x) {
  VectorExponentials code(ImplicitLocOpBuilder(loc, builder), cast<VectorType>(x.getType()));
  return code.powerOfTwo(x);
}
