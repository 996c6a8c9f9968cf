// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/Means.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Graph.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace weft;

/// The float value that `value` is computed from through nothing but `Ops`.
template <typename... Ops> static Value without(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<Ops...>(op) || !isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))))
      break;
    value = op->getOperand(0);
  }
  return value;
}

Value weft::withoutViews(Value value) { return without<ConvertOp, ReshapeOp>(value); }

static Value withoutConversions(Value value) { return without<ConvertOp>(value); }

Value weft::dividedBy(Value quotient, double count) {
  Operation *op = withoutViews(quotient).getDefiningOp();
  DenseElementsAttr by;
  if (!isa_and_present<DivOp, MulOp>(op) || !matchPattern(op->getOperand(1), m_Constant(&by)) ||
      !by.isSplat() || !isa<FloatType>(by.getElementType()))
    return {};
  double number = by.getSplatValue<APFloat>().convertToDouble();
  double divisor = isa<DivOp>(op) ? number : 1 / number;
  constexpr double rounding = 1e-6; // of 1 / count in float32
  return std::abs(divisor - count) <= rounding * count ? op->getOperand(0) : Value();
}

/// The dims of a reshape's operand whose elements lie along `dims` of its result, and no others.
static SmallVector<int64_t> dimsOfOperand(ReshapeOp op, ArrayRef<int64_t> dims) {
  ArrayRef<int64_t> from = op.getOperand().getType().getShape(), to = op.getType().getShape();
  int64_t fromRank = from.size(), toRank = to.size();
  SmallVector<int64_t> found;
  // Groups of dims with equal products, as few in each as there can be.
  for (int64_t i = 0, j = 0; i != fromRank && j != toRank;) {
    int64_t firstFrom = i, firstTo = j;
    int64_t inner = from[i++], outer = to[j++];
    while (inner != outer) {
      if (inner < outer && i != fromRank)
        inner *= from[i++];
      else if (outer < inner && j != toRank)
        outer *= to[j++];
      else
        return found;
    }
    if (llvm::all_of(llvm::seq(firstTo, j),
                     [&](int64_t dim) { return to[dim] == 1 || llvm::is_contained(dims, dim); }))
      llvm::append_range(found, llvm::seq(firstFrom, i));
  }
  return found;
}

static SmallVector<int64_t> dimsOfOperand(TransposeOp op, ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [&](int64_t dim) { return op.getPerm()[dim]; });
}

/// The places of a broadcast's operand in its result, of dims that are more than one element.
static SmallVector<int64_t> placesOf(BroadcastInDimOp spread) {
  SmallVector<int64_t> places;
  for (auto [size, place] :
       llvm::zip_equal(spread.getOperand().getType().getShape(), spread.getDims()))
    if (size != 1)
      places.push_back(place);
  return places;
}

static bool sumsToZero(Value value, ArrayRef<int64_t> dims, unsigned &budget);

/// Whether `value` times `by` sums to zero because `by` is a broadcast, and `value` does over dims
/// along which that repeats.
static bool productSumsToZero(Value value, Value by, ArrayRef<int64_t> dims, unsigned &budget) {
  auto spread = withoutConversions(by).getDefiningOp<BroadcastInDimOp>();
  if (!spread)
    return false;
  SmallVector<int64_t> places = placesOf(spread), repeated;
  llvm::copy_if(dims, std::back_inserter(repeated),
                [&](int64_t dim) { return !llvm::is_contained(places, dim); });
  return sumsToZero(value, repeated, budget);
}

/// Whether `value` repeats the mean of `of` over some of `dims`.
static bool isMean(Value value, Value of, ArrayRef<int64_t> dims) {
  auto spread = withoutConversions(value).getDefiningOp<BroadcastInDimOp>();
  Operation *quotient = spread ? withoutViews(spread.getOperand()).getDefiningOp() : nullptr;
  if (!isa_and_present<DivOp, MulOp>(quotient))
    return false;
  auto sum = withoutViews(quotient->getOperand(0)).getDefiningOp<ReduceOp>();
  if (!sum || sum.getKind() != ReduceKind::sum ||
      withoutConversions(sum.getOperand()) != withoutConversions(of))
    return false;
  int64_t count = 1;
  SmallVector<int64_t> kept;
  for (auto [dim, size] : llvm::enumerate(tensorType(of).getShape())) {
    bool isSummed = llvm::is_contained(sum.getDims(), static_cast<int64_t>(dim));
    if (isSummed && size != 1 && !llvm::is_contained(dims, static_cast<int64_t>(dim)))
      return false;
    count *= isSummed ? size : 1;
    if (!isSummed && size != 1)
      kept.push_back(dim);
  }
  // Each mean stands where its elements do.
  return placesOf(spread) == kept && dividedBy(quotient->getResult(0), count);
}

/// Whether `value` is a - ... - mean(a) - ..., where what else is subtracted sums to zero.
static bool isLessItsMean(Value value, ArrayRef<int64_t> dims, unsigned &budget) {
  SmallVector<Value> subtracted;
  while (auto difference = value.getDefiningOp<SubOp>()) {
    subtracted.push_back(difference.getRhs());
    value = difference.getLhs();
    Value *mean = llvm::find_if(subtracted, [&](Value each) { return isMean(each, value, dims); });
    if (mean == subtracted.end())
      continue;
    subtracted.erase(mean);
    return llvm::all_of(subtracted, [&](Value each) { return sumsToZero(each, dims, budget); });
  }
  return false;
}

/// `budget`: ops that may still be looked at.
static bool sumsToZero(Value value, ArrayRef<int64_t> dims, unsigned &budget) {
  if (budget == 0)
    return false;
  --budget;
  value = withoutConversions(value);
  if (auto reshape = value.getDefiningOp<ReshapeOp>())
    return sumsToZero(reshape.getOperand(), dimsOfOperand(reshape, dims), budget);
  if (auto transpose = value.getDefiningOp<TransposeOp>())
    return sumsToZero(transpose.getOperand(), dimsOfOperand(transpose, dims), budget);
  if (auto product = value.getDefiningOp<MulOp>()) {
    Value lhs = product.getLhs(), rhs = product.getRhs();
    return productSumsToZero(lhs, rhs, dims, budget) || productSumsToZero(rhs, lhs, dims, budget);
  }
  if (isLessItsMean(value, dims, budget))
    return true;
  Operation *op = value.getDefiningOp();
  return isa_and_present<AddOp, SubOp>(op) && sumsToZero(op->getOperand(0), dims, budget) &&
         sumsToZero(op->getOperand(1), dims, budget);
}

bool weft::sumsToZero(Value value, ArrayRef<int64_t> dims) {
  // A norm's gradient is about ten ops; terms that several read are looked at anew for each.
  unsigned budget = 64;
  return ::sumsToZero(value, dims, budget);
}
