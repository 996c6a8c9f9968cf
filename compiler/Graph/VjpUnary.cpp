// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of the elementwise ops of one operand, by PyTorch's formulas
// (tools/autograd/derivatives.yaml).
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"

#include <cmath>

using namespace mlir;
using namespace weft;

/// Attaches the rule of an op whose operand has the cotangent `formula`(c, g, x, y), for the
/// result's cotangent g, the operand x and the result y.
template <typename OpTy, auto formula> static void deriveFrom(MLIRContext *context) {
  derive<OpTy, [](OpTy op, Cotangents &c) -> LogicalResult {
    c.give(0, formula(c, c.of(), op.getOperand(), op.getResult()));
    return success();
  }>(context);
}

/// Attaches the rule of an op that is constant but at its steps, so that no operand has a
/// cotangent.
template <typename OpTy> static void deriveConstant(MLIRContext *context) {
  derive<OpTy, [](OpTy, Cotangents &) -> LogicalResult { return success(); }>(context);
}

/// The value 1 - x^2.
static Value oneLessSquare(Cotangents &c, Value x) { return c.sub(c.splat(x, 1), c.mul(x, x)); }

/// The derivative of erf: 2 / sqrt(pi) * e^(-x^2).
static Value bell(Cotangents &c, Value x) {
  return c.scale(c.create<ExpOp>(c.neg(c.mul(x, x))), M_2_SQRTPI);
}

static LogicalResult convertVjp(ConvertOp op, Cotangents &c) {
  Type from = op.getOperand().getType().getElementType();
  if (isa<FloatType>(from))
    c.give(0, c.create<ConvertOp>(tensorType(c.of()).clone(from), c.of()));
  return success();
}

static LogicalResult sqrtVjp(SqrtOp op, Cotangents &c) {
  Value y = op.getResult(), slope = c.div(c.of(), c.scale(y, 2));
  // If all elements are zero, the norm has no derivative; PyTorch gives zero.
  if (c.subgradient() == "zero")
    slope = c.select(c.compare(ComparePredicate::eq, y, 0), c.splat(y, 0), slope);
  c.give(0, slope);
  return success();
}

void weft::deriveUnary(MLIRContext *context) {
  deriveFrom<NegOp, [](Cotangents &c, Value g, Value, Value) -> Value { return c.neg(g); }>(
      context);
  deriveFrom<AbsOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.mul(g, c.create<SignOp>(x));
  }>(context);
  deriveFrom<ExpOp, [](Cotangents &c, Value g, Value, Value y) -> Value { return c.mul(g, y); }>(
      context);
  deriveFrom<Exp2Op, [](Cotangents &c, Value g, Value, Value y) -> Value {
    return c.scale(c.mul(g, y), M_LN2);
  }>(context);
  deriveFrom<Expm1Op, [](Cotangents &c, Value g, Value, Value y) -> Value {
    return c.mul(g, c.shift(y, 1));
  }>(context);
  deriveFrom<LogOp, [](Cotangents &c, Value g, Value x, Value) -> Value { return c.div(g, x); }>(
      context);
  deriveFrom<Log2Op, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.div(g, c.scale(x, M_LN2));
  }>(context);
  deriveFrom<Log10Op, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.div(g, c.scale(x, M_LN10));
  }>(context);
  deriveFrom<Log1pOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.div(g, c.shift(x, 1));
  }>(context);
  derive<SqrtOp, sqrtVjp>(context);
  deriveFrom<RsqrtOp, [](Cotangents &c, Value g, Value, Value y) -> Value {
    return c.mul(c.scale(g, -0.5), c.mul(y, c.mul(y, y)));
  }>(context);
  deriveFrom<SinOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.mul(g, c.create<CosOp>(x));
  }>(context);
  deriveFrom<CosOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.neg(c.mul(g, c.create<SinOp>(x)));
  }>(context);
  deriveFrom<TanOp, [](Cotangents &c, Value g, Value, Value y) -> Value {
    return c.mul(g, c.shift(c.mul(y, y), 1));
  }>(context);
  deriveFrom<AsinOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.div(g, c.create<SqrtOp>(oneLessSquare(c, x)));
  }>(context);
  deriveFrom<AcosOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.neg(c.div(g, c.create<SqrtOp>(oneLessSquare(c, x))));
  }>(context);
  deriveFrom<AtanOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.div(g, c.shift(c.mul(x, x), 1));
  }>(context);
  deriveFrom<SinhOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.mul(g, c.create<CoshOp>(x));
  }>(context);
  deriveFrom<CoshOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.mul(g, c.create<SinhOp>(x));
  }>(context);
  deriveFrom<TanhOp, [](Cotangents &c, Value g, Value, Value y) -> Value {
    return c.mul(g, oneLessSquare(c, y));
  }>(context);
  deriveFrom<AsinhOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.div(g, c.create<SqrtOp>(c.shift(c.mul(x, x), 1)));
  }>(context);
  deriveFrom<AcoshOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.div(g, c.create<SqrtOp>(c.shift(c.mul(x, x), -1)));
  }>(context);
  deriveFrom<AtanhOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.div(g, oneLessSquare(c, x));
  }>(context);
  deriveFrom<SigmoidOp, [](Cotangents &c, Value g, Value, Value y) -> Value {
    return c.mul(g, c.mul(c.sub(c.splat(y, 1), y), y));
  }>(context);
  deriveFrom<ErfOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.mul(g, bell(c, x));
  }>(context);
  deriveFrom<ErfcOp, [](Cotangents &c, Value g, Value x, Value) -> Value {
    return c.neg(c.mul(g, bell(c, x)));
  }>(context);
  deriveConstant<SignOp>(context);
  deriveConstant<CeilOp>(context);
  deriveConstant<FloorOp>(context);
  deriveConstant<RoundEvenOp>(context);
  deriveConstant<TruncOp>(context);
  derive<ConvertOp, convertVjp>(context);
}
