// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simplification works on sums of (coefficient, atom): an atom is a dim or a division or
// remainder that could not be resolved.
#include "compiler/Kernels/Index/IndexSpace.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace weft;

struct IndexSpace::Sum {
  SmallVector<std::pair<AffineExpr, int64_t>> terms;
  int64_t constant = 0;

  void add(AffineExpr atom, int64_t coefficient) {
    for (auto &[other, c] : terms)
      if (other == atom) {
        c += coefficient;
        return;
      }
    terms.push_back({atom, coefficient});
  }

  /// The terms that are multiples of `unit`, divided by it, and the remaining terms.
  std::pair<Sum, Sum> dividedBy(int64_t unit) const {
    Sum quotient, rest;
    for (auto [atom, coefficient] : terms) {
      if (coefficient % unit == 0)
        quotient.add(atom, coefficient / unit);
      else
        rest.add(atom, coefficient);
    }
    quotient.constant = llvm::divideFloorSigned(constant, unit);
    rest.constant = constant - quotient.constant * unit;
    return {quotient, rest};
  }
};

void IndexSpace::flatten(AffineExpr expr, int64_t scale, Sum &sum) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    sum.constant += scale * constant.getValue();
    return;
  }
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    if (expr.getKind() == AffineExprKind::Add) {
      flatten(binary.getLHS(), scale, sum);
      flatten(binary.getRHS(), scale, sum);
      return;
    }
    if (expr.getKind() == AffineExprKind::Mul)
      if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS())) {
        flatten(binary.getLHS(), scale * factor.getValue(), sum);
        return;
      }
  }
  sum.add(expr, scale);
}

/// Simplifies (x mod c) + c * (x floordiv c), when both are terms of `sum`, to x.
bool IndexSpace::mergeQuotientWithRemainder(Sum &sum) {
  for (auto &[atom, coefficient] : sum.terms) {
    auto remainder = dyn_cast<AffineBinaryOpExpr>(atom);
    if (!remainder || coefficient == 0 || atom.getKind() != AffineExprKind::Mod)
      continue;
    AffineExpr divisor = remainder.getRHS();
    auto size = dyn_cast<AffineConstantExpr>(divisor);
    if (!size)
      continue;
    AffineExpr quotient = remainder.getLHS().floorDiv(divisor);
    for (auto &[other, otherCoefficient] : sum.terms)
      if (other == quotient && otherCoefficient == coefficient * size.getValue()) {
        int64_t scale = coefficient;
        AffineExpr whole = remainder.getLHS();
        coefficient = 0;
        otherCoefficient = 0;
        flatten(whole, scale, sum);
        return true;
      }
  }
  return false;
}

AffineExpr IndexSpace::build(Sum &sum, MLIRContext *context) {
  // Outer loop variables first, so that loop-invariant partial sums are hoisted from inner loops.
  llvm::stable_sort(sum.terms, [](const auto &a, const auto &b) {
    auto position = [](AffineExpr atom) {
      auto dim = dyn_cast<AffineDimExpr>(atom);
      return dim ? static_cast<int64_t>(dim.getPosition()) : -1;
    };
    return position(a.first) < position(b.first);
  });
  AffineExpr result;
  for (auto &[atom, coefficient] : sum.terms) {
    if (coefficient == 0)
      continue;
    AffineExpr term = coefficient == 1 ? atom : atom * coefficient;
    result = result ? result + term : term;
  }
  if (!result)
    return getAffineConstantExpr(sum.constant, context);
  return sum.constant == 0 ? result : result + sum.constant;
}

int64_t IndexSpace::count(ArrayRef<unsigned> dims) const {
  int64_t total = 1;
  for (unsigned dim : dims)
    total *= extent(dim);
  return total;
}

AffineExpr IndexSpace::addDim(int64_t extent) {
  extents.push_back(extent);
  return getAffineDimExpr(extents.size() - 1, context);
}

std::pair<int64_t, int64_t> IndexSpace::rangeOf(AffineExpr expr) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return {0, std::max<int64_t>(extents[dim.getPosition()] - 1, 0)};
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto [lowA, highA] = rangeOf(binary.getLHS());
  auto [lowB, highB] = rangeOf(binary.getRHS());
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return {lowA + lowB, highA + highB};
  case AffineExprKind::Mul: {
    int64_t corners[] = {lowA * lowB, lowA * highB, highA * lowB, highA * highB};
    return {*llvm::min_element(corners), *llvm::max_element(corners)};
  }
  case AffineExprKind::FloorDiv:
    return {llvm::divideFloorSigned(lowA, lowB), llvm::divideFloorSigned(highA, lowB)};
  case AffineExprKind::Mod:
    if (lowA >= 0 && highA < lowB)
      return {lowA, highA};
    return {0, lowB - 1};
  default:
    llvm_unreachable("index expressions use +, *, floordiv and mod");
  }
}

/// Splits `sum` into units * unit + below, where 0 <= below < unit and unit divides `divisor`:
/// `below` does not affect the quotient by `divisor`.
std::optional<IndexSpace::Parts> IndexSpace::partsOf(const Sum &sum, int64_t divisor) const {
  SmallVector<int64_t> candidates;
  for (auto [atom, coefficient] : sum.terms)
    candidates.push_back(std::gcd(coefficient, divisor));
  llvm::sort(candidates, std::greater<>());
  for (int64_t unit : candidates) {
    if (unit <= 1)
      break;
    auto [units, below] = sum.dividedBy(unit);
    AffineExpr belowUnit = build(below, context);
    auto [low, high] = rangeOf(belowUnit);
    if (low >= 0 && high < unit)
      return Parts{unit, build(units, context), belowUnit};
  }
  return std::nullopt;
}

/// `value` floordiv or mod `divisor`, where `value` is simplified.
AffineExpr IndexSpace::divide(AffineExprKind kind, AffineExpr value, int64_t divisor) const {
  bool divides = kind == AffineExprKind::FloorDiv;
  Sum all;
  flatten(value, 1, all);
  auto [quotient, rest] = all.dividedBy(divisor);
  AffineExpr base = build(quotient, context), remainder = build(rest, context);
  auto [low, high] = rangeOf(remainder);
  if (low >= 0 && high < divisor)
    return divides ? base : remainder;
  if (std::optional<Parts> parts = partsOf(rest, divisor)) {
    AffineExpr ofUnits = divide(kind, parts->units, divisor / parts->unit);
    return divides ? base + ofUnits : ofUnits * parts->unit + parts->below;
  }
  return divides ? base + remainder.floorDiv(divisor) : remainder % divisor;
}

AffineExpr IndexSpace::simplify(AffineExpr expr) const {
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    AffineExpr lhs = simplify(binary.getLHS()), rhs = simplify(binary.getRHS());
    AffineExprKind kind = expr.getKind();
    bool divides = kind == AffineExprKind::FloorDiv || kind == AffineExprKind::Mod;
    expr = divides ? divide(kind, lhs, cast<AffineConstantExpr>(rhs).getValue())
                   : getAffineBinaryOpExpr(kind, lhs, rhs);
  }
  Sum sum;
  flatten(expr, 1, sum);
  while (mergeQuotientWithRemainder(sum)) {
  }
  return build(sum, context);
}

AffineExpr IndexSpace::linearize(ArrayRef<AffineExpr> index, ArrayRef<int64_t> shape) const {
  AffineExpr position = constant(0);
  for (auto [expr, size] : llvm::zip_equal(index, shape))
    position = position * size + expr;
  return simplify(position);
}

Index IndexSpace::delinearize(AffineExpr position, ArrayRef<int64_t> shape) const {
  Index index(shape.size(), constant(0));
  // An empty tensor has no elements; return before dividing by a size of 0.
  if (llvm::is_contained(shape, 0))
    return index;
  int64_t stride = 1;
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    AffineExpr quotient = stride == 1 ? position : position.floorDiv(stride);
    // The outermost index needs no remainder: positions stay inside the shape.
    bool outermost = llvm::all_of(shape.take_front(i), [](int64_t size) { return size == 1; });
    index[i] = shape[i] == 1 ? constant(0)
               : outermost   ? simplify(quotient)
                             : simplify(quotient % shape[i]);
    stride *= shape[i];
  }
  return index;
}

std::optional<int64_t> IndexSpace::coefficientOf(AffineExpr expr, unsigned dim) const {
  Sum sum;
  flatten(expr, 1, sum);
  int64_t coefficient = 0;
  for (auto [atom, c] : sum.terms) {
    if (c == 0 || !atom.isFunctionOfDim(dim))
      continue;
    if (!isa<AffineDimExpr>(atom))
      return std::nullopt;
    coefficient += c;
  }
  return coefficient;
}
