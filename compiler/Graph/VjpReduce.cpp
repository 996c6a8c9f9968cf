// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of the ops that combine elements along dimensions.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace weft;

/// The slope of a product by an element is the product of the other elements. If the operand has no
/// zero at all, this is the result divided by the element. Otherwise it is computed without the
/// element, as by prod_safe_zeros_backward (FunctionsManual.cpp); with two other zeros it is 0. One
/// other zero enters as the sum of the other zeros, so that it has a derivative of its own. With
/// subgradient "zero", several zeros give 0 even beside a NaN.
static Value productCotangent(ReduceOp op, Cotangents &c) {
  Value x = op.getOperand(), one = c.splat(x, 1), zero = c.splat(x, 0);
  ArrayRef<int64_t> dims = op.getDims();
  auto ofRow = [&](ReduceKind kind, Value each) {
    return c.unreduce(c.reduce(kind, each, dims), x, dims);
  };
  Value isZero = c.compare(ComparePredicate::eq, x, 0);
  Value isFinite = c.compare(ComparePredicate::eq, c.sub(x, x), 0);
  Value nonzero = c.select(isZero, one, x), plain = c.select(isFinite, nonzero, one);
  Value zeros = ofRow(ReduceKind::sum, c.select(isZero, one, zero));
  Value infinite = ofRow(ReduceKind::sum, c.select(isFinite, zero, one));
  // If an element is the only one in its row that is infinite or NaN, the others' product is formed
  // without it.
  Value isAlone =
      c.compare(ComparePredicate::eq, c.sub(infinite, c.select(isFinite, zero, one)), 0);
  Value others =
      c.select(isAlone, ofRow(ReduceKind::prod, plain), ofRow(ReduceKind::prod, nonzero));
  Value sign = c.select(isAlone, one, c.create<CopySignOp>(one, x));
  others = c.div(others, c.select(isFinite, nonzero, sign));
  Value otherZeros = c.sub(zeros, c.select(isZero, one, zero));
  Value vanishing = c.sub(ofRow(ReduceKind::sum, c.where(isZero, x)), c.where(isZero, x));
  Value factor = c.select(c.compare(ComparePredicate::eq, otherZeros, 0), one,
                          c.where(c.compare(ComparePredicate::eq, otherZeros, 1), vanishing));
  Value without = c.mul(others, factor), over = c.div(c.unreduce(op.getResult(), x, dims), nonzero);
  if (c.subgradient() == "zero") {
    Value counts = c.create<OrOp>(c.compare(ComparePredicate::le, zeros, 1),
                                  c.compare(ComparePredicate::eq, without, without));
    without = c.where(counts, without);
  }
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq(tensorType(x).getRank()));
  Value hasZeros = c.unreduce(c.reduce(ReduceKind::max, c.select(isZero, one, zero), all), x, all);
  Value slope = c.select(c.compare(ComparePredicate::eq, hasZeros, 0), over, without);
  return c.mul(c.unreduce(c.of(), x, dims), slope);
}

/// The cotangent goes to the elements that equal the extremum, divided evenly among them, or with
/// subgradient "first" to the first of them. In a row with a NaN no element equals the extremum,
/// and PyTorch's gradient there is 0 / 0; with "one" the NaNs share the cotangent.
static Value extremumCotangent(ReduceOp op, Cotangents &c) {
  Value x = op.getOperand(), g = c.of();
  ArrayRef<int64_t> dims = op.getDims();
  if (c.subgradient() == "first") {
    Value at = c.create<ArgReduceOp>(op.getKind(), x, dims[0]);
    auto positions = tensorType(x).clone(tensorType(at).getElementType());
    Value isFirst = c.compare(ComparePredicate::eq, c.create<IotaOp>(positions, dims[0]),
                              c.unreduce(at, x, dims));
    return c.where(isFirst, c.unreduce(g, x, dims));
  }
  Value isFound = c.compare(ComparePredicate::eq, x, c.unreduce(op.getResult(), x, dims));
  if (c.subgradient() == "one")
    isFound = c.create<OrOp>(isFound, c.compare(ComparePredicate::ne, x, x));
  Value share = c.select(isFound, c.splat(x, 1), c.splat(x, 0));
  Value each = c.div(g, c.total(share, dims));
  return c.mul(share, c.unreduce(each, x, dims));
}

static LogicalResult reduceVjp(ReduceOp op, Cotangents &c) {
  switch (op.getKind()) {
  case ReduceKind::sum:
    c.give(0, c.unreduce(c.of(), op.getOperand(), op.getDims()));
    return success();
  case ReduceKind::prod:
    c.give(0, productCotangent(op, c));
    return success();
  case ReduceKind::max:
  case ReduceKind::min:
    c.give(0, extremumCotangent(op, c));
    return success();
  default:
    return failure();
  }
}

/// The sums along `dim` of `value` from each element to the end.
static Value sumsFromHere(Cotangents &c, Value value, int64_t dim) {
  Value turned = c.create<ReverseOp>(value, dim);
  return c.create<ReverseOp>(c.create<CumulativeOp>(ReduceKind::sum, turned, dim), dim);
}

/// An element is a factor of all products from its position on; its slope in each is that product
/// divided by it. For the first zero these products are formed without it, up to the second zero.
/// From a zero on, products count as 0 for all other elements, even where a product or the element
/// itself is NaN.
static Value runningProductCotangent(CumulativeOp op, Cotangents &c) {
  int64_t dim = op.getDim();
  Value x = op.getOperand(), one = c.splat(x, 1), zero = c.splat(x, 0);
  Value isZero = c.compare(ComparePredicate::eq, x, 0);
  Value zeros = c.create<CumulativeOp>(ReduceKind::sum, c.select(isZero, one, zero), dim);
  Value isFirst = c.create<AndOp>(isZero, c.compare(ComparePredicate::eq, zeros, 1));
  Value others = c.create<CumulativeOp>(ReduceKind::prod, c.select(isFirst, one, x), dim);
  Value isAhead = c.compare(ComparePredicate::eq, zeros, 0);
  auto sums = [&](Value last, Value products) {
    Value weighed = c.mul(c.of(), products);
    Value counts = c.create<OrOp>(last, c.compare(ComparePredicate::eq, weighed, weighed));
    return sumsFromHere(c, c.where(counts, weighed), dim);
  };
  Value at = sums(c.compare(ComparePredicate::le, zeros, 1), others);
  Value over = c.div(sums(isAhead, op.getResult()), c.select(isZero, one, x));
  Value isNumber = c.create<OrOp>(isAhead, c.compare(ComparePredicate::eq, x, x));
  Value isDivided = c.create<AndOp>(isNumber, c.create<NotOp>(isZero));
  // The gradient of the second zero is 0, because the first zero is a factor of its products, but
  // it has a derivative along the first zero.
  Value isSecond = c.create<AndOp>(isZero, c.compare(ComparePredicate::eq, zeros, 2));
  Value withFirst = c.create<CumulativeOp>(ReduceKind::prod, c.select(isSecond, one, x), dim);
  Value sum = sums(c.compare(ComparePredicate::le, zeros, 1), withFirst);
  Value atSecond = c.create<WithSlopesOp>(zero, sum, one, ArrayRef<int64_t>());
  return c.select(isFirst, at, c.select(isSecond, atSecond, c.where(isDivided, over)));
}

/// Each cotangent goes to the last of the elements that equal the extremum so far, or, from the
/// first NaN on, to the last NaN. An element is recognised by being at least (at most) the extremum
/// before it, not by equality with its own: the backward may compute elements again, with other
/// rounding than the extrema.
static Value runningExtremumCotangent(CumulativeOp op, Cotangents &c) {
  Value x = op.getOperand();
  int64_t dim = op.getDim(), size = tensorType(x).getDimSize(dim);
  if (size < 2)
    return c.of();
  auto places = tensorType(x).clone(IntegerType::get(op.getContext(), 64));
  Value none = c.create<ConstantOp>(
      DenseElementsAttr::get(places, IntegerAttr::get(places.getElementType(), 0)));
  auto first = [&](Value value, int64_t count) {
    SmallVector<int64_t> limit(places.getShape()), zeros(limit.size(), 0), ones(limit.size(), 1);
    limit[dim] = count;
    return c.slice(value, zeros, limit, ones);
  };
  Value before = c.create<ConcatOp>(ValueRange{first(x, 1), first(op.getResult(), size - 1)}, dim);
  auto isAsFar = op.getKind() == ReduceKind::max ? ComparePredicate::ge : ComparePredicate::le;
  Value holds =
      c.create<OrOp>(c.compare(isAsFar, x, before), c.compare(ComparePredicate::ne, x, x));
  Value candidates = c.select(holds, c.create<IotaOp>(places, dim), none);
  Value at = c.create<CumulativeOp>(ReduceKind::max, candidates, dim);
  SmallVector<Value> indices;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, places.getRank()));
  for (int64_t each : dims)
    indices.push_back(each == dim ? at : c.create<IotaOp>(places, each));
  return c.create<ScatterOp>(ScatterKind::sum, c.splat(x, 0), c.of(), ValueRange(indices), dims);
}

static LogicalResult cumulativeVjp(CumulativeOp op, Cotangents &c) {
  switch (op.getKind()) {
  case ReduceKind::sum: // each element is a term of all sums from its position on
    c.give(0, sumsFromHere(c, c.of(), op.getDim()));
    return success();
  case ReduceKind::prod:
    c.give(0, runningProductCotangent(op, c));
    return success();
  case ReduceKind::max:
  case ReduceKind::min:
    c.give(0, runningExtremumCotangent(op, c));
    return success();
  default:
    return failure();
  }
}

/// Whether the windows are adjacent, do not overlap and cover the operand.
static bool isTiling(ReduceWindowOp op) {
  return llvm::all_of(llvm::zip_equal(op.getOperand().getType().getShape(), op.getType().getShape(),
                                      op.getWindow(), op.getStrides(), op.getDilations()),
                      [](auto dim) {
                        auto [size, count, window, stride, dilation] = dim;
                        return stride == window && dilation == 1 && size == count * window;
                      });
}

/// The operand's shape with two dimensions for each of its own: the window's number and the place
/// within the window.
static SmallVector<int64_t> tiles(ReduceWindowOp op) {
  SmallVector<int64_t> shape;
  for (auto [count, window] : llvm::zip_equal(op.getType().getShape(), op.getWindow()))
    llvm::append_values(shape, count, window);
  return shape;
}

/// Repeats the element of `value` for each window at all places of the window.
static Value spread(ReduceWindowOp op, Cotangents &c, Value value) {
  SmallVector<int64_t> places;
  for (int64_t dim : llvm::seq(op.getType().getRank()))
    places.push_back(2 * dim);
  auto type = RankedTensorType::get(tiles(op), tensorType(value).getElementType());
  return c.create<BroadcastInDimOp>(type, value, places);
}

/// The cotangent of sums over windows. An element's cotangent is the sum over all windows that
/// contain it, which is again a sum over windows of the cotangents, with zeros between and around
/// them.
static Value windowSumCotangent(ReduceWindowOp op, Cotangents &c) {
  if (isTiling(op))
    return c.reshape(spread(op, c, c.of()), op.getOperand().getType().getShape());
  SmallVector<int64_t> start, wide;
  SmallVector<int64_t> once(op.getStrides().size(), 1);
  for (auto [size, window, dilation] :
       llvm::zip_equal(op.getOperand().getType().getShape(), op.getWindow(), op.getDilations())) {
    start.push_back((window - 1) * dilation);
    wide.push_back(size + (window - 1) * dilation);
  }
  Value placed = c.place(c.of(), start, op.getStrides(), wide);
  return c.create<ReduceWindowOp>(ReduceKind::sum, placed, op.getWindow(), once, op.getDilations());
}

/// The position of each window's extremum, as its distance from the window's first element in
/// elements of the row-major operand. Of equal elements it is the first, as in PyTorch's pooling,
/// and of NaNs the last. Elements are compared only with each other: one that the backward computes
/// again may be rounded otherwise than the extremum that the forward found.
static Value extremumOffsets(ReduceWindowOp op, Cotangents &c, RankedTensorType type) {
  SmallVector<int64_t> steps = computeStrides(op.getWindow());
  SmallVector<int64_t> extents = computeStrides(op.getOperand().getType().getShape());
  auto isFurther = op.getKind() == ReduceKind::max ? ComparePredicate::gt : ComparePredicate::lt;
  Value found, extremum;
  for (int64_t place : llvm::seq(computeProduct(op.getWindow()))) {
    SmallVector<int64_t> start, limit;
    int64_t offset = 0;
    for (auto [at, dilation, stride, count, extent] :
         llvm::zip_equal(delinearize(place, steps), op.getDilations(), op.getStrides(),
                         op.getType().getShape(), extents)) {
      start.push_back(at * dilation);
      limit.push_back(at * dilation + (count - 1) * stride + 1);
      offset += at * dilation * extent;
    }
    Value here = c.create<ConstantOp>(
        DenseElementsAttr::get(type, IntegerAttr::get(type.getElementType(), offset)));
    Value seen = c.slice(op.getOperand(), start, limit, op.getStrides());
    if (!found) {
      found = here;
      extremum = seen;
      continue;
    }
    Value hit = c.create<OrOp>(c.compare(isFurther, seen, extremum),
                               c.compare(ComparePredicate::ne, seen, seen));
    found = c.select(hit, here, found);
    extremum = c.select(hit, seen, extremum);
  }
  return found;
}

/// The sum over the dimensions of each iota of `type` times its scale.
static Value positions(Cotangents &c, RankedTensorType type, ArrayRef<int64_t> scales) {
  Value sum;
  for (auto [dim, scale] : llvm::enumerate(scales)) {
    if (scale == 0 || type.getDimSize(dim) == 1)
      continue;
    Value along = c.create<IotaOp>(type, dim);
    Value scaled = c.mul(along, c.create<ConstantOp>(DenseElementsAttr::get(
                                    type, IntegerAttr::get(type.getElementType(), scale))));
    sum = sum ? c.add(sum, scaled) : scaled;
  }
  return sum ? sum
             : c.create<ConstantOp>(
                   DenseElementsAttr::get(type, IntegerAttr::get(type.getElementType(), 0)));
}

/// Each cotangent goes to the element that is its window's extremum.
static Value windowExtremumCotangent(ReduceWindowOp op, Cotangents &c) {
  RankedTensorType operand = op.getOperand().getType();
  int64_t size = operand.getNumElements();
  Type integer = c.getBuilder().getIntegerType(size > INT32_MAX ? 64 : 32);
  auto type = RankedTensorType::get(op.getType().getShape(), integer);
  Value offsets = extremumOffsets(op, c, type);
  SmallVector<int64_t> extents = computeStrides(operand.getShape()), scales;
  if (isTiling(op)) {
    for (int64_t extent : extents)
      llvm::append_values(scales, 0, extent);
    Value inside = positions(c, RankedTensorType::get(tiles(op), integer), scales);
    Value taken = c.compare(ComparePredicate::eq, spread(op, c, offsets), inside);
    return c.reshape(c.where(taken, spread(op, c, c.of())), operand.getShape());
  }
  for (auto [extent, stride] : llvm::zip_equal(extents, op.getStrides()))
    scales.push_back(extent * stride);
  Value places = c.add(offsets, positions(c, type, scales));
  // One element may be the extremum of several windows, so that their cotangents are added in the
  // wider type.
  Value updates = c.enter(c.of());
  auto flat = RankedTensorType::get({size}, tensorType(updates).getElementType());
  Value zeros = c.create<ConstantOp>(
      DenseElementsAttr::get(flat, FloatAttr::get(flat.getElementType(), 0.0)));
  int64_t count = type.getNumElements();
  Value sums = c.create<ScatterOp>(ScatterKind::sum, zeros, c.reshape(updates, {count}),
                                   ValueRange(c.reshape(places, {count})), ArrayRef<int64_t>{0});
  return c.leave(c.reshape(sums, operand.getShape()), operand.getElementType());
}

static LogicalResult reduceWindowVjp(ReduceWindowOp op, Cotangents &c) {
  // At most so many places in a window, since each place becomes a strided slice of the operand.
  constexpr int64_t mostPlaces = 128;
  switch (op.getKind()) {
  case ReduceKind::sum:
    c.give(0, windowSumCotangent(op, c));
    return success();
  case ReduceKind::max:
  case ReduceKind::min:
    if (computeProduct(op.getWindow()) > mostPlaces)
      return failure();
    c.give(0, windowExtremumCotangent(op, c));
    return success();
  default:
    return failure();
  }
}

void weft::deriveReduce(MLIRContext *context) {
  derive<ReduceOp, reduceVjp>(context);
  derive<CumulativeOp, cumulativeVjp>(context);
  derive<ReduceWindowOp, reduceWindowVjp>(context);
}
