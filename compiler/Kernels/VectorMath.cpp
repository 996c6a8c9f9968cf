// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expands elementary functions of f32 vectors. Each reduces its argument to a short
// interval, evaluates a polynomial there (VectorMathTables.h) and undoes the reduction, for
// all lanes alike: branches become selects. The reductions are those of W. J. Cody and
// W. Waite, "Software Manual for the Elementary Functions", 1980.
#include "compiler/Kernels/VectorMath.h"
#include "compiler/Kernels/Avx512Math.h"
#include "compiler/Kernels/Float32.h"
#include "compiler/Kernels/VectorAngles.h"
#include "compiler/Kernels/VectorExponentials.h"
#include "compiler/Kernels/VectorLogarithms.h"
#include "compiler/Kernels/VectorPower.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <array>

using namespace mlir;
using namespace weft;

namespace {
class VectorRemainder : private VectorArithmetic {
public:
  VectorRemainder(ImplicitLocOpBuilder builder, VectorType type)
      : VectorArithmetic(builder, type) {}

  /// x - trunc(x / y) y, which is what `function` of the library computes.
  Value of(Value x, Value y, Operation *function);
};
} // namespace

Value VectorRemainder::of(Value x, Value y, Operation *function) {
  // Up to here whole numbers are floats, and so is the product of one with a part of another float.
  constexpr float longestQuotient = 0x1p22f;
  Value quotient = truncate(div(x, y));
  // Of longer quotients the last digits are lost; those of zeros and infinities are none.
  Value isShort = both(less(absolute(quotient), constant(longestQuotient)),
                       less(absolute(y), constant(float32::infinity)));
  return branch(isShort, function, [&] {
    // Exact, as is all that follows. Division may have rounded up to the next whole number.
    Value rest = fma(negate(quotient), y, x);
    Value isBeyond = less(mul(withSignOf(constant(1.0f), x), rest), constant(0.0f));
    Value back = add(rest, withSignOf(y, x));
    return withSignOf(select(isBeyond, back, rest), x);
  });
}

/// The number that all lanes of a constant are, or nothing.
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

/// What one is added to, if `sum` adds it to an OpT.
template <typename OpT> static OpT addedToOne(arith::AddFOp sum) {
  for (auto [one, other] : eitherWay(sum))
    if (auto op = other.getDefiningOp<OpT>(); op && numberIn(one) == 1.0)
      return op;
  return {};
}

/// 1 + erf(y) and 1 + tanh(y), the factors of a gelu, which are cheaper than erf and tanh alone;
/// unless the latter is needed besides, as where gradients are.
static Value expandSum(arith::AddFOp sum, VectorExponentials &exponentials) {
  if (auto erf = addedToOne<math::ErfOp>(sum))
    return exponentials.onePlusErf(erf.getOperand());
  if (auto tanh = addedToOne<math::TanhOp>(sum); tanh && tanh->hasOneUse())
    return exponentials.onePlusTanh(tanh.getOperand());
  return {};
}

/// `value` as a product of another and a number.
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

/// y (1 + erf(r y)), r > 0, as in a gelu; null where lanes do not pick. Of ratios far from one,
/// what else they are multiplied with would leave the floats.
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

/// The value of `op` in vector arithmetic, or null when it is not one of ours.
static Value expand(Operation *op) {
  auto type = op->getNumResults() == 1 ? dyn_cast<VectorType>(op->getResult(0).getType()) : nullptr;
  if (!type || !type.getElementType().isF32())
    return {};
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  VectorExponentials exponentials(builder, type);
  VectorLogarithms logarithms(builder, type);
  VectorAngles angles(builder, type);
  auto argument = [&](unsigned number = 0) { return op->getOperand(number); };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return exponentials.exp(argument()); })
      .Case([&](math::Exp2Op) { return exponentials.exp2(argument()); })
      .Case([&](math::ExpM1Op) { return exponentials.expm1(argument()); })
      .Case([&](math::SinhOp) { return exponentials.sinh(argument()); })
      .Case([&](math::CoshOp) { return exponentials.cosh(argument()); })
      .Case([&](math::TanhOp) { return exponentials.tanh(argument()); })
      .Case([&](math::ErfOp) { return exponentials.erf(argument()); })
      .Case([&](arith::AddFOp sum) { return expandSum(sum, exponentials); })
      .Case([&](arith::MulFOp product) { return expandProduct(product, exponentials); })
      .Case([&](math::LogOp) { return logarithms.log(argument()); })
      .Case([&](math::Log2Op) { return VectorPower(builder, type).log2(argument()); })
      .Case([&](math::Log10Op) { return VectorPower(builder, type).log10(argument()); })
      .Case([&](math::Log1pOp) { return logarithms.log1p(argument()); })
      .Case([&](math::SinOp) { return angles.sine(argument(), /*quarters=*/0, op); })
      .Case([&](math::CosOp) { return angles.sine(argument(), /*quarters=*/1, op); })
      .Case([&](math::TanOp) { return angles.tan(argument(), op); })
      .Case([&](math::AsinOp) { return angles.asin(argument()); })
      .Case([&](math::AcosOp) { return angles.acos(argument()); })
      .Case([&](math::AtanOp) { return angles.atan(argument()); })
      .Case([&](math::Atan2Op) { return angles.atan2(argument(0), argument(1)); })
      .Case([&](math::PowFOp) { return VectorPower(builder, type).pow(argument(0), argument(1)); })
      .Case([&](arith::RemFOp) {
        return VectorRemainder(builder, type).of(argument(0), argument(1), op);
      })
      .Default(Value());
}

void weft::expandVectorMath(func::FuncOp kernel) {
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  // Backwards: a sum is met ahead of the erf that it may make needless.
  for (Operation *op : llvm::reverse(ops)) {
    if (isOpTriviallyDead(op)) {
      op->erase();
      continue;
    }
    Value expanded = expandForAvx512(op);
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
