// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of the ops that combine elements along dims.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace weft;

/// The product of the others: of one zero among them, only its own cotangent is left.
static Value productCotangent(ReduceOp op, Cotangents &c) {
  Value x = op.getOperand(), one = c.splat(x, 1), zero = c.splat(x, 0);
  ArrayRef<int64_t> dims = op.getDims();
  Value isZero = c.compare(ComparePredicate::eq, x, 0);
  Value others = c.reduce(ReduceKind::prod, c.select(isZero, one, x), dims);
  Value zeros = c.unreduce(c.reduce(ReduceKind::sum, c.select(isZero, one, zero), dims), x, dims);
  Value product = c.mul(c.unreduce(c.of(), x, dims), c.unreduce(others, x, dims));
  Value atZero = c.where(c.compare(ComparePredicate::eq, zeros, 1), product);
  Value elsewhere = c.where(c.compare(ComparePredicate::eq, zeros, 0), c.div(product, x));
  return c.select(isZero, atZero, elsewhere);
}

/// To the extremum: shared evenly between equal ones, or the first alone's.
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
  Value count = c.total(c.select(isFound, c.splat(x, 1), c.splat(x, 0)), dims);
  return c.where(isFound, c.unreduce(c.div(g, count), x, dims));
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

/// Sums of `value` from each element of `dim` on.
static Value sumsFromHere(Cotangents &c, Value value, int64_t dim) {
  Value turned = c.create<ReverseOp>(value, dim);
  return c.create<ReverseOp>(c.create<CumulativeOp>(ReduceKind::sum, turned, dim), dim);
}

/// An element is a factor of all products behind it. Ahead of the first zero they can be divided by
/// it; at that zero they are formed without it; behind it all are zero.
static Value runningProductCotangent(CumulativeOp op, Cotangents &c) {
  int64_t dim = op.getDim();
  Value x = op.getOperand(), one = c.splat(x, 1), zero = c.splat(x, 0);
  Value isZero = c.compare(ComparePredicate::eq, x, 0);
  Value zeros = c.create<CumulativeOp>(ReduceKind::sum, c.select(isZero, one, zero), dim);
  Value isFirst = c.create<AndOp>(isZero, c.compare(ComparePredicate::eq, zeros, 1));
  Value others = c.create<CumulativeOp>(ReduceKind::prod, c.select(isFirst, one, x), dim);
  Value at = sumsFromHere(c, c.mul(c.of(), others), dim);
  Value ahead =
      c.div(sumsFromHere(c, c.mul(c.of(), op.getResult()), dim), c.select(isZero, one, x));
  return c.select(isFirst, at, c.where(c.compare(ComparePredicate::eq, zeros, 0), ahead));
}

/// To the last of the equal extrema so far; from the first NaN on NaNs alone count.
static Value runningExtremumCotangent(CumulativeOp op, Cotangents &c) {
  Value x = op.getOperand();
  int64_t dim = op.getDim();
  auto places = tensorType(x).clone(IntegerType::get(op.getContext(), 64));
  Value none = c.create<ConstantOp>(
      DenseElementsAttr::get(places, IntegerAttr::get(places.getElementType(), 0)));
  Value holds = c.create<OrOp>(c.compare(ComparePredicate::eq, x, op.getResult()),
                               c.compare(ComparePredicate::ne, x, x));
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
  case ReduceKind::sum: // each element counts in all behind it
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

/// Of sums over windows: every element counts in those that reach it, which are windows again, of
/// the cotangents with zeros between and around them.
static Value windowSumCotangent(ReduceWindowOp op, Cotangents &c) {
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

/// Each place of the window is a strided slice of the operand: cotangents go back the same way. Of
/// equal extrema the first in row-major order has it, as in PyTorch's pooling.
static LogicalResult reduceWindowVjp(ReduceWindowOp op, Cotangents &c) {
  constexpr int64_t mostPlaces = 128;
  ReduceKind kind = op.getKind();
  bool isExtremum = kind == ReduceKind::max || kind == ReduceKind::min;
  bool isLarge = computeProduct(op.getWindow()) > mostPlaces;
  if (isLarge && kind == ReduceKind::sum) {
    c.give(0, windowSumCotangent(op, c));
    return success();
  }
  if (isLarge || (kind != ReduceKind::sum && !isExtremum))
    return failure();
  RankedTensorType type = op.getOperand().getType(), windows = op.getType();
  Value x = op.getOperand(), sum, taken;
  SmallVector<int64_t> steps = computeStrides(op.getWindow());
  for (int64_t place : llvm::seq(computeProduct(op.getWindow()))) {
    SmallVector<int64_t> start, limit;
    for (auto [at, dilation, stride, count] : llvm::zip_equal(
             delinearize(place, steps), op.getDilations(), op.getStrides(), windows.getShape())) {
      start.push_back(at * dilation);
      limit.push_back(at * dilation + (count - 1) * stride + 1);
    }
    Value part = c.of();
    if (isExtremum) {
      Value seen = c.slice(x, start, limit, op.getStrides());
      Value hit = c.create<OrOp>(c.compare(ComparePredicate::eq, seen, op.getResult()),
                                 c.compare(ComparePredicate::ne, seen, seen));
      Value isFirst = taken ? c.create<AndOp>(hit, c.create<NotOp>(taken)) : hit;
      taken = taken ? c.create<OrOp>(taken, hit) : hit;
      part = c.where(isFirst, part);
    }
    Value placed = c.place(part, start, op.getStrides(), type.getShape());
    sum = sum ? c.add(sum, placed) : placed;
  }
  c.give(0, sum);
  return success();
}

void weft::deriveReduce(MLIRContext *context) {
  derive<ReduceOp, reduceVjp>(context);
  derive<CumulativeOp, cumulativeVjp>(context);
  derive<ReduceWindowOp, reduceWindowVjp>(context);
}
