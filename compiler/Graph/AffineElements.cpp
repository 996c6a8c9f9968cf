// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Follows index arithmetic through moves of elements, sums and concatenations to iotas and
// constants, to a small depth.
#include "compiler/Graph/AffineElements.h"
#include "compiler/Graph/ConstantFolding.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

using MaybeAffine = std::optional<AffineElements>;
using Follow = llvm::function_ref<MaybeAffine(Value)>;

/// Positions shifted, compared with their neighbours: what a packed sequence's mask is made of.
static constexpr int maxDepth = 8;

std::optional<std::pair<int64_t, int64_t>> AffineElements::rangeIn(ArrayRef<int64_t> shape) const {
  int64_t low = base, high = base;
  for (auto [step, size] : llvm::zip_equal(steps, shape)) {
    int64_t whole;
    int64_t &end = step < 0 ? low : high;
    if (llvm::MulOverflow(step, std::max<int64_t>(size - 1, 0), whole) ||
        llvm::AddOverflow(end, whole, end))
      return std::nullopt;
  }
  return std::pair(low, high);
}

MaybeAffine AffineElements::complement() const {
  // Not d <= 0 is 1 - d <= 0.
  AffineElements result;
  if (llvm::SubOverflow<int64_t>(1, base, result.base))
    return std::nullopt;
  result.steps = llvm::map_to_vector(steps, [](int64_t step) { return -step; });
  return result;
}

/// Steps along dims of size 1 mean nothing; elements that may wrap are not affine.
static MaybeAffine normalized(MaybeAffine affine, Value value) {
  RankedTensorType type = tensorType(value);
  if (!affine)
    return std::nullopt;
  for (auto [step, size] : llvm::zip_equal(affine->steps, type.getShape()))
    step = size == 1 ? 0 : step;
  auto range = affine->rangeIn(type.getShape());
  unsigned width = type.getElementType().getIntOrFloatBitWidth();
  bool fits = range && (width == 1 ||
                        (llvm::isIntN(width, range->first) && llvm::isIntN(width, range->second)));
  return fits ? affine : std::nullopt;
}

static MaybeAffine combined(MaybeAffine lhs, MaybeAffine rhs, int64_t factor) {
  if (!lhs || !rhs)
    return std::nullopt;
  auto add = [&](int64_t &sum, int64_t term) {
    return !llvm::MulOverflow(term, factor, term) && !llvm::AddOverflow(sum, term, sum);
  };
  bool exact = add(lhs->base, rhs->base);
  for (auto [sum, step] : llvm::zip_equal(lhs->steps, rhs->steps))
    exact &= add(sum, step);
  return exact ? lhs : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Moves of elements
//===----------------------------------------------------------------------===//

static MaybeAffine ofBroadcast(BroadcastInDimOp op, Follow follow) {
  MaybeAffine inner = follow(op.getOperand());
  if (!inner)
    return std::nullopt;
  AffineElements result{inner->base, SmallVector<int64_t>(op.getType().getRank(), 0)};
  for (auto [dim, step] : llvm::zip_equal(op.getDims(), inner->steps))
    result.steps[dim] = step;
  return result;
}

/// Dims of size 1 come and go; others stay in their order.
static MaybeAffine ofReshape(ReshapeOp op, Follow follow) {
  auto isLong = [](int64_t size) { return size != 1; };
  ArrayRef<int64_t> from = op.getOperand().getType().getShape(), to = op.getType().getShape();
  if (!llvm::equal(llvm::make_filter_range(from, isLong), llvm::make_filter_range(to, isLong)))
    return std::nullopt;
  MaybeAffine inner = follow(op.getOperand());
  if (!inner)
    return std::nullopt;
  AffineElements result{inner->base, {}};
  SmallVector<int64_t> steps;
  for (auto [size, step] : llvm::zip_equal(from, inner->steps))
    if (isLong(size))
      steps.push_back(step);
  size_t next = 0;
  for (int64_t size : to)
    result.steps.push_back(isLong(size) ? steps[next++] : 0);
  return result;
}

static MaybeAffine ofTranspose(TransposeOp op, Follow follow) {
  MaybeAffine inner = follow(op.getOperand());
  if (!inner)
    return std::nullopt;
  AffineElements result{inner->base, {}};
  for (int64_t dim : op.getPerm())
    result.steps.push_back(inner->steps[dim]);
  return result;
}

static MaybeAffine ofSlice(SliceOp op, Follow follow) {
  MaybeAffine inner = follow(op.getOperand());
  if (!inner)
    return std::nullopt;
  // Start and stride lie inside the operand, whose elements do not overflow.
  for (auto [step, start, stride] : llvm::zip_equal(inner->steps, op.getStart(), op.getStride())) {
    inner->base += step * start;
    step *= stride;
  }
  return inner;
}

static MaybeAffine ofMove(Operation *op, Follow follow) {
  return llvm::TypeSwitch<Operation *, MaybeAffine>(op)
      .Case([&](BroadcastInDimOp move) { return ofBroadcast(move, follow); })
      .Case([&](ReshapeOp move) { return ofReshape(move, follow); })
      .Case([&](TransposeOp move) { return ofTranspose(move, follow); })
      .Case([&](SliceOp move) { return ofSlice(move, follow); })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// Numbers and comparisons
//===----------------------------------------------------------------------===//

/// Parts that continue one another.
static MaybeAffine ofConcat(ConcatOp op, Follow follow) {
  uint64_t dim = op.getDim();
  SmallVector<AffineElements> parts;
  std::optional<int64_t> step;
  for (Value operand : op.getOperands()) {
    MaybeAffine part = follow(operand);
    if (!part)
      return std::nullopt;
    if (tensorType(operand).getDimSize(dim) != 1)
      step = part->steps[dim];
    parts.push_back(*part);
  }
  if (!step)
    return std::nullopt;
  AffineElements whole = parts.front();
  whole.steps[dim] = *step;
  int64_t start = 0;
  for (auto [part, operand] : llvm::zip_equal(parts, op.getOperands())) {
    part.steps[dim] = tensorType(operand).getDimSize(dim) == 1 ? *step : part.steps[dim];
    if (part.base != whole.base + *step * start || part.steps != whole.steps)
      return std::nullopt;
    start += tensorType(operand).getDimSize(dim);
  }
  return whole;
}

static MaybeAffine elementsOf(Value value, int depth) {
  Type element = tensorType(value).getElementType();
  Operation *op = value.getDefiningOp();
  if (!op || depth == maxDepth || !isa<IntegerType>(element) || isUnsigned(element))
    return std::nullopt;
  int64_t rank = tensorType(value).getRank();
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant))) {
    if (!constant.isSplat())
      return std::nullopt;
    return AffineElements{constant.getSplatValue<llvm::APInt>().getSExtValue(),
                          SmallVector<int64_t>(rank, 0)};
  }
  auto follow = [&](Value operand) { return elementsOf(operand, depth + 1); };
  MaybeAffine affine =
      llvm::TypeSwitch<Operation *, MaybeAffine>(op)
          .Case([&](IotaOp iota) {
            AffineElements result{0, SmallVector<int64_t>(rank, 0)};
            result.steps[iota.getDim()] = 1;
            return result;
          })
          .Case([&](AddOp add) { return combined(follow(add.getLhs()), follow(add.getRhs()), 1); })
          .Case([&](SubOp sub) { return combined(follow(sub.getLhs()), follow(sub.getRhs()), -1); })
          .Case([&](ConvertOp convert) { return follow(convert.getOperand()); })
          .Case([&](ConcatOp concat) { return ofConcat(concat, follow); })
          .Default([&](Operation *) { return ofMove(op, follow); });
  return normalized(affine, value);
}

std::optional<AffineElements> weft::affineElements(Value value) { return elementsOf(value, 0); }

std::optional<AffineElements> weft::affineDifference(Value lhs, Value rhs) {
  return combined(affineElements(lhs), affineElements(rhs), -1);
}

static MaybeAffine comparisonOf(Value condition, int depth) {
  Operation *op = condition.getDefiningOp();
  if (!op || depth == maxDepth)
    return std::nullopt;
  auto follow = [&](Value operand) { return comparisonOf(operand, depth + 1); };
  if (auto complement = dyn_cast<NotOp>(op)) {
    MaybeAffine difference = follow(complement.getOperand());
    return difference ? difference->complement() : std::nullopt;
  }
  auto cmp = dyn_cast<CmpOp>(op);
  if (!cmp)
    return normalized(ofMove(op, follow), condition);
  using Predicate = ComparePredicate;
  Predicate predicate = cmp.getPredicate();
  if (predicate == Predicate::eq || predicate == Predicate::ne)
    return std::nullopt;
  bool swapped = predicate == Predicate::ge || predicate == Predicate::gt;
  bool strict = predicate == Predicate::lt || predicate == Predicate::gt;
  Value lhs = cmp.getLhs(), rhs = cmp.getRhs();
  MaybeAffine difference = swapped ? affineDifference(rhs, lhs) : affineDifference(lhs, rhs);
  if (difference && strict && llvm::AddOverflow<int64_t>(difference->base, 1, difference->base))
    return std::nullopt;
  return difference;
}

std::optional<AffineElements> weft::affineComparison(Value condition) {
  return comparisonOf(condition, 0);
}
