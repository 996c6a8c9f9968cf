// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of integer tensors, followed through index arithmetic to a small depth.
#include "compiler/Graph/IntegerRange.h"
#include "compiler/Graph/AffineElements.h"
#include "compiler/Graph/ConstantFolding.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// Every element lies in [low, high].
struct Interval {
  int64_t low, high;
};

using MaybeInterval = std::optional<Interval>;

} // namespace

/// Deeper arithmetic than this does not occur around masks and indices.
static constexpr int maxDepth = 6;

static MaybeInterval rangeOf(Value value, int depth);

/// `range` if no element of it wraps in `type`.
static MaybeInterval fit(MaybeInterval range, Type type) {
  if (!range || type.isInteger(64))
    return range;
  unsigned width = type.getIntOrFloatBitWidth();
  int64_t low = isUnsigned(type) ? 0 : llvm::minIntN(width);
  int64_t high = isUnsigned(type) ? llvm::maxUIntN(width) : llvm::maxIntN(width);
  return range->low >= low && range->high <= high ? range : std::nullopt;
}

static MaybeInterval rangeOfConstant(DenseElementsAttr elements) {
  Type type = elements.getElementType();
  auto number = [&](const llvm::APInt &value) {
    return isUnsigned(type) ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue();
  };
  if (elements.isSplat()) {
    int64_t value = number(elements.getSplatValue<llvm::APInt>());
    return Interval{value, value};
  }
  auto values = llvm::map_to_vector(elements.getValues<llvm::APInt>(), number);
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  return Interval{*low, *high};
}

static MaybeInterval rangeOfSum(MaybeInterval lhs, MaybeInterval rhs) {
  Interval sum;
  if (!lhs || !rhs || llvm::AddOverflow(lhs->low, rhs->low, sum.low) ||
      llvm::AddOverflow(lhs->high, rhs->high, sum.high))
    return std::nullopt;
  return sum;
}

static MaybeInterval negated(MaybeInterval range) {
  if (!range || range->low == std::numeric_limits<int64_t>::min())
    return std::nullopt;
  return Interval{-range->high, -range->low};
}

static MaybeInterval rangeOfProduct(MaybeInterval lhs, MaybeInterval rhs) {
  if (!lhs || !rhs)
    return std::nullopt;
  SmallVector<int64_t, 4> corners;
  for (int64_t left : {lhs->low, lhs->high})
    for (int64_t right : {rhs->low, rhs->high})
      if (llvm::MulOverflow(left, right, corners.emplace_back()))
        return std::nullopt;
  auto [low, high] = std::minmax_element(corners.begin(), corners.end());
  return Interval{*low, *high};
}

static MaybeInterval rangeOf(Value value, int depth) {
  Type element = tensorType(value).getElementType();
  Operation *op = value.getDefiningOp();
  if (!op || depth == maxDepth || !isa<IntegerType>(element) || element.isInteger(1))
    return std::nullopt;
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant))) {
    DenseElementsAttr elements = foldable(constant);
    return elements ? rangeOfConstant(elements) : MaybeInterval();
  }
  auto next = [&](Value operand) { return rangeOf(operand, depth + 1); };
  MaybeInterval range =
      llvm::TypeSwitch<Operation *, MaybeInterval>(op)
          .Case([&](IotaOp iota) {
            return Interval{0, iota.getType().getDimSize(iota.getDim()) - 1};
          })
          .Case<BroadcastInDimOp, ReshapeOp, TransposeOp, SliceOp, ReverseOp, ConvertOp>(
              [&](auto move) { return next(move.getOperand()); })
          .Case([&](AddOp add) { return rangeOfSum(next(add.getLhs()), next(add.getRhs())); })
          .Case([&](SubOp sub) {
            return rangeOfSum(next(sub.getLhs()), negated(next(sub.getRhs())));
          })
          .Case([&](MulOp mul) { return rangeOfProduct(next(mul.getLhs()), next(mul.getRhs())); })
          .Default([](Operation *) { return std::nullopt; });
  return fit(range, element);
}

static std::optional<bool> decideRanges(ComparePredicate predicate, Interval left, Interval right) {
  auto answer = [](bool always, bool never) {
    return always ? std::optional(true) : never ? std::optional(false) : std::nullopt;
  };
  bool less = left.high<right.low, greater = left.low> right.high;
  bool atMost = left.high <= right.low, atLeast = left.low >= right.high;
  bool equal = atMost && atLeast;
  switch (predicate) {
  case ComparePredicate::eq:
    return answer(equal, less || greater);
  case ComparePredicate::ne:
    return answer(less || greater, equal);
  case ComparePredicate::lt:
    return answer(less, atLeast);
  case ComparePredicate::le:
    return answer(atMost, greater);
  case ComparePredicate::gt:
    return answer(greater, atMost);
  case ComparePredicate::ge:
    return answer(atLeast, less);
  }
  llvm_unreachable("unknown predicate");
}

std::optional<bool> weft::decide(ComparePredicate predicate, Value lhs, Value rhs) {
  // Positions that differ by a constant have ranges that overlap.
  if (auto difference = affineDifference(lhs, rhs))
    if (auto range = difference->rangeIn(tensorType(lhs).getShape()))
      if (auto known = decideRanges(predicate, {range->first, range->second}, {0, 0}))
        return known;
  MaybeInterval left = rangeOf(lhs, 0), right = rangeOf(rhs, 0);
  return left && right ? decideRanges(predicate, *left, *right) : std::nullopt;
}
