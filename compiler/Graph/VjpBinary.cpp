// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of the elementwise ops with several operands, with PyTorch's conventions at kinks and
// ties.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"

using namespace mlir;
using namespace weft;

static LogicalResult addVjp(AddOp, Cotangents &c) {
  c.give(0, c.of());
  c.give(1, c.of());
  return success();
}

static LogicalResult subVjp(SubOp, Cotangents &c) {
  c.give(0, c.of());
  if (c.wants(1u))
    c.give(1, c.neg(c.of()));
  return success();
}

static LogicalResult mulVjp(MulOp op, Cotangents &c) {
  // In x log(y), the gradient of x is 0 where the cotangent is 0, even if log(y) is infinite.
  if (c.wants(0u) && c.subgradient() == "zero")
    c.give(0, c.productOrZero(c.of(), op.getRhs()));
  else if (c.wants(0u))
    c.give(0, c.mul(c.of(), op.getRhs()));
  if (c.wants(1u))
    c.give(1, c.mul(c.of(), op.getLhs()));
  return success();
}

static LogicalResult fmaVjp(FmaOp op, Cotangents &c) {
  if (c.wants(0u))
    c.give(0, c.mul(c.of(), op.getRhs()));
  if (c.wants(1u))
    c.give(1, c.mul(c.of(), op.getLhs()));
  c.give(2, c.of());
  return success();
}

static LogicalResult divVjp(DivOp op, Cotangents &c) {
  Value y = op.getRhs();
  if (c.wants(0u))
    c.give(0, c.div(c.of(), y));
  if (c.wants(1u))
    c.give(1, c.neg(c.mul(c.of(), c.div(c.div(op.getLhs(), y), y))));
  return success();
}

static LogicalResult remVjp(RemOp op, Cotangents &c) {
  c.give(0, c.of());
  if (!c.wants(1u))
    return success();
  // PyTorch's derivative uses the rounded quotient, although the remainder is computed with the
  // exact one.
  Value quotient = c.create<TruncOp>(c.div(op.getLhs(), op.getRhs()));
  c.give(1, c.neg(c.mul(c.of(), quotient)));
  return success();
}

static LogicalResult powVjp(PowOp op, Cotangents &c) {
  Value x = op.getLhs(), y = op.getRhs(), g = c.of();
  if (c.wants(0u)) {
    Value slope = c.mul(y, c.create<PowOp>(x, c.shift(y, -1)));
    c.give(0, c.select(c.compare(ComparePredicate::eq, y, 0), c.splat(x, 0), c.mul(g, slope)));
  }
  if (c.wants(1u)) {
    // 0^y is 0 for all y > 0, so that the slope is 0, where the logarithm of 0 would make it NaN.
    Value flat = c.create<AndOp>(c.compare(ComparePredicate::eq, x, 0),
                                 c.compare(ComparePredicate::ge, y, 0));
    Value slope = c.mul(op.getResult(), c.create<LogOp>(x));
    c.give(1, c.select(flat, c.splat(y, 0), c.mul(g, slope)));
  }
  return success();
}

static LogicalResult atan2Vjp(Atan2Op op, Cotangents &c) {
  Value y = op.getLhs(), x = op.getRhs();
  // There is no derivative at the origin; PyTorch gives zero there.
  Value square = c.add(c.mul(y, y), c.mul(x, x)), zero = c.splat(square, 0);
  Value part = c.select(c.compare(ComparePredicate::eq, square, 0), zero, c.div(c.of(), square));
  if (c.wants(0u))
    c.give(0, c.mul(part, x));
  if (c.wants(1u))
    c.give(1, c.neg(c.mul(part, y)));
  return success();
}

/// The cotangent is multiplied by -1 where the sign was changed, and by 0 where x is 0.
static LogicalResult copySignVjp(CopySignOp op, Cotangents &c) {
  Value x = op.getLhs();
  Value ratio = c.mul(c.of(), c.div(op.getResult(), x));
  c.give(0, c.select(c.compare(ComparePredicate::eq, x, 0), c.splat(x, 0), ratio));
  return success();
}

/// A maximum or minimum gives its cotangent to the operand that it equals, and half of it to each
/// of two equal operands. If the lhs is compared with a bound, a tie gives the cotangent to the
/// bound (relu) or to the lhs (clamp).
template <typename OpTy> static LogicalResult extremumVjp(OpTy op, Cotangents &c) {
  constexpr bool isMax = std::is_same_v<OpTy, MaxOp>;
  constexpr auto beaten = isMax ? ComparePredicate::lt : ComparePredicate::gt;
  constexpr auto kept = isMax ? ComparePredicate::ge : ComparePredicate::le;
  constexpr auto notAbove = isMax ? ComparePredicate::le : ComparePredicate::ge;
  Value g = c.of(), x = op.getLhs(), y = op.getRhs(), zero = c.splat(g, 0);
  if (c.subgradient() == "zero" || c.subgradient() == "one") {
    bool isBounds = c.subgradient() == "zero";
    // Whether a strict bound is exceeded can be read off the result as well as off the operand, and
    // the result is more often in memory.
    Value lost = isBounds ? c.compare(notAbove, op.getResult(), y) : c.compare(beaten, x, y);
    // NaN is not within the bounds of a clamp.
    if (c.wants(0u))
      c.give(0, isBounds ? c.select(lost, zero, g) : c.select(c.compare(kept, x, y), g, zero));
    if (c.wants(1u))
      c.give(1, c.select(lost, g, zero));
    return success();
  }
  Value tie = c.compare(ComparePredicate::eq, x, y), half = c.scale(g, 0.5);
  Value shared = c.select(tie, half, g);
  if (c.wants(0u))
    c.give(0, c.select(c.compare(beaten, x, y), zero, shared));
  if (c.wants(1u))
    c.give(1, c.select(c.compare(beaten, y, x), zero, shared));
  return success();
}

static LogicalResult selectVjp(SelectOp op, Cotangents &c) {
  Value g = c.of(), zero = c.splat(g, 0);
  if (c.wants(1u))
    c.give(1, c.select(op.getCondition(), g, zero));
  if (c.wants(2u))
    c.give(2, c.select(op.getCondition(), zero, g));
  return success();
}

void weft::deriveBinary(MLIRContext *context) {
  derive<AddOp, addVjp>(context);
  derive<SubOp, subVjp>(context);
  derive<MulOp, mulVjp>(context);
  derive<FmaOp, fmaVjp>(context);
  derive<DivOp, divVjp>(context);
  derive<RemOp, remVjp>(context);
  derive<PowOp, powVjp>(context);
  derive<Atan2Op, atan2Vjp>(context);
  derive<CopySignOp, copySignVjp>(context);
  derive<MaxOp, extremumVjp<MaxOp>>(context);
  derive<MinOp, extremumVjp<MinOp>>(context);
  derive<SelectOp, selectVjp>(context);
}
