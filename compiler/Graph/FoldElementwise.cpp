// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Folds of elementwise ops. Each is exact: a float identity holds for zeros of both signs,
// infinities and NaN; integers wrap.
#include "compiler/Graph/ConstantFolding.h"
#include "compiler/Graph/IntegerRange.h"

using namespace mlir;
using namespace weft;
using llvm::APFloat;
using llvm::APInt;
using Ints = ArrayRef<APInt>;
using Floats = ArrayRef<APFloat>;

/// Evaluates `ints` or `floats`, as the element type says, on constant operands.
template <typename IntFn, typename FloatFn>
static OpFoldResult evaluate(RankedTensorType type, ArrayRef<Attribute> operands, IntFn ints,
                             FloatFn floats) {
  auto constants = llvm::map_to_vector(operands, foldable);
  if (llvm::is_contained(constants, DenseElementsAttr()))
    return {};
  if (isa<FloatType>(type.getElementType()))
    return foldElements<APFloat, APFloat>(type, constants, floats);
  return foldElements<APInt, APInt>(type, constants, ints);
}

using MaybeInt = std::optional<APInt>;
using MaybeFloat = std::optional<APFloat>;

template <typename OpTy> static Value operandOfSame(Value value) {
  auto op = value.getDefiningOp<OpTy>();
  return op ? op.getOperand() : Value();
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

OpFoldResult NegOp::fold(FoldAdaptor adaptor) {
  if (Value inner = operandOfSame<NegOp>(getOperand()))
    return inner;
  return evaluate(
      getType(), adaptor.getOperand(), [](Ints x) { return MaybeInt(-x[0]); },
      [](Floats x) { return MaybeFloat(llvm::neg(x[0])); });
}

OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  if (Value inner = operandOfSame<NotOp>(getOperand()))
    return inner;
  return evaluate(
      getType(), adaptor.getOperand(), [](Ints x) { return MaybeInt(~x[0]); },
      [](Floats) { return MaybeFloat(); });
}

//===----------------------------------------------------------------------===//
// Binary. Commutative ops have their constant on the right.
//===----------------------------------------------------------------------===//

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  // x + 0.0 is not x for x = -0.0.
  if (isIntSplat(adaptor.getRhs(), 0) || isFloatSplat(adaptor.getRhs(), -0.0))
    return getLhs();
  bool isBool = getType().getElementType().isInteger(1);
  return evaluate(
      getType(), adaptor.getOperands(),
      [&](Ints x) { return MaybeInt(isBool ? x[0] | x[1] : x[0] + x[1]); },
      [](Floats x) { return MaybeFloat(x[0] + x[1]); });
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  if (isIntSplat(adaptor.getRhs(), 0) || isFloatSplat(adaptor.getRhs(), 0.0))
    return getLhs();
  if (getLhs() == getRhs() && isa<IntegerType>(getType().getElementType()))
    return intSplat(getType(), 0);
  return evaluate(
      getType(), adaptor.getOperands(), [](Ints x) { return MaybeInt(x[0] - x[1]); },
      [](Floats x) { return MaybeFloat(x[0] - x[1]); });
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isIntSplat(adaptor.getRhs(), 1) || isFloatSplat(adaptor.getRhs(), 1.0))
    return getLhs();
  if (isIntSplat(adaptor.getRhs(), 0))
    return adaptor.getRhs();
  return evaluate(
      getType(), adaptor.getOperands(), [](Ints x) { return MaybeInt(x[0] * x[1]); },
      [](Floats x) { return MaybeFloat(x[0] * x[1]); });
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isIntSplat(adaptor.getRhs(), 1) || isFloatSplat(adaptor.getRhs(), 1.0))
    return getLhs();
  bool asUnsigned = isUnsigned(getType().getElementType());
  return evaluate(
      getType(), adaptor.getOperands(),
      [&](Ints x) -> MaybeInt {
        if (x[1].isZero())
          return std::nullopt;
        return asUnsigned ? x[0].udiv(x[1]) : x[0].sdiv(x[1]);
      },
      [](Floats x) { return MaybeFloat(x[0] / x[1]); });
}

/// Of a maximum, with `ofFloats` as it is for floats, or of a minimum.
template <typename OpTy>
static OpFoldResult foldExtremum(OpTy op, ArrayRef<Attribute> operands, bool isMax,
                                 APFloat (*ofFloats)(const APFloat &, const APFloat &)) {
  if (op.getLhs() == op.getRhs())
    return op.getLhs();
  bool asUnsigned = isUnsigned(op.getType().getElementType());
  return evaluate(
      op.getType(), operands,
      [&](Ints x) {
        bool isFirstLess = asUnsigned ? x[0].ult(x[1]) : x[0].slt(x[1]);
        return MaybeInt(x[isFirstLess == isMax ? 1 : 0]);
      },
      [&](Floats x) { return MaybeFloat(ofFloats(x[0], x[1])); });
}

OpFoldResult MaxOp::fold(FoldAdaptor adaptor) {
  return foldExtremum(*this, adaptor.getOperands(), /*isMax=*/true, llvm::maximum);
}

OpFoldResult MinOp::fold(FoldAdaptor adaptor) {
  return foldExtremum(*this, adaptor.getOperands(), /*isMax=*/false, llvm::minimum);
}

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs() || isIntSplat(adaptor.getRhs(), -1))
    return getLhs();
  if (isIntSplat(adaptor.getRhs(), 0))
    return adaptor.getRhs();
  return evaluate(
      getType(), adaptor.getOperands(), [](Ints x) { return MaybeInt(x[0] & x[1]); },
      [](Floats) { return MaybeFloat(); });
}

OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs() || isIntSplat(adaptor.getRhs(), 0))
    return getLhs();
  if (isIntSplat(adaptor.getRhs(), -1))
    return adaptor.getRhs();
  return evaluate(
      getType(), adaptor.getOperands(), [](Ints x) { return MaybeInt(x[0] | x[1]); },
      [](Floats) { return MaybeFloat(); });
}

OpFoldResult XorOp::fold(FoldAdaptor adaptor) {
  if (isIntSplat(adaptor.getRhs(), 0))
    return getLhs();
  return evaluate(
      getType(), adaptor.getOperands(), [](Ints x) { return MaybeInt(x[0] ^ x[1]); },
      [](Floats) { return MaybeFloat(); });
}

//===----------------------------------------------------------------------===//
// Compare and select
//===----------------------------------------------------------------------===//

/// What `predicate` says of an ordering; unordered floats are only unequal.
static bool holds(ComparePredicate predicate, APFloat::cmpResult order) {
  bool less = order == APFloat::cmpLessThan, equal = order == APFloat::cmpEqual;
  bool greater = order == APFloat::cmpGreaterThan;
  switch (predicate) {
  case ComparePredicate::eq:
    return equal;
  case ComparePredicate::ne:
    return !equal;
  case ComparePredicate::lt:
    return less;
  case ComparePredicate::le:
    return less || equal;
  case ComparePredicate::gt:
    return greater;
  case ComparePredicate::ge:
    return greater || equal;
  }
  llvm_unreachable("unknown predicate");
}

static APFloat::cmpResult order(const APInt &lhs, const APInt &rhs, bool asUnsigned) {
  if (lhs == rhs)
    return APFloat::cmpEqual;
  bool less = asUnsigned ? lhs.ult(rhs) : lhs.slt(rhs);
  return less ? APFloat::cmpLessThan : APFloat::cmpGreaterThan;
}

OpFoldResult CmpOp::fold(FoldAdaptor adaptor) {
  ComparePredicate predicate = getPredicate();
  if (std::optional<bool> known = decide(predicate, getLhs(), getRhs()))
    return intSplat(getType(), *known);
  DenseElementsAttr lhs = foldable(adaptor.getLhs()), rhs = foldable(adaptor.getRhs());
  if (!lhs || !rhs)
    return {};
  auto answer = [](bool value) { return MaybeInt(APInt(1, value)); };
  Type element = getLhs().getType().getElementType();
  if (isa<FloatType>(element))
    return foldElements<APFloat, APInt>(getType(), {lhs, rhs}, [&](Floats x) {
      return answer(holds(predicate, x[0].compare(x[1])));
    });
  return foldElements<APInt, APInt>(getType(), {lhs, rhs}, [&](Ints x) {
    return answer(holds(predicate, order(x[0], x[1], isUnsigned(element))));
  });
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse() || isIntSplat(adaptor.getCondition(), 1))
    return getOnTrue();
  if (isIntSplat(adaptor.getCondition(), 0))
    return getOnFalse();
  bool isCondition = getType() == getCondition().getType() && isIntSplat(adaptor.getOnTrue(), -1) &&
                     isIntSplat(adaptor.getOnFalse(), 0);
  return isCondition ? OpFoldResult(getCondition()) : OpFoldResult();
}
