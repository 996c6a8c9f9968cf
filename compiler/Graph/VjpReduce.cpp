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

/// Of running sums: each element counts in all behind it.
static LogicalResult cumulativeVjp(CumulativeOp op, Cotangents &c) {
  if (op.getKind() != ReduceKind::sum)
    return failure();
  int64_t dim = op.getDim();
  Value turned = c.create<ReverseOp>(c.of(), dim);
  Value sums = c.create<CumulativeOp>(ReduceKind::sum, turned, dim);
  c.give(0, c.create<ReverseOp>(sums, dim));
  return success();
}

/// Each place of the window is a strided slice of the operand: cotangents go back the same way. Of
/// equal extrema the first in row-major order has it, as in PyTorch's pooling.
static LogicalResult reduceWindowVjp(ReduceWindowOp op, Cotangents &c) {
  constexpr int64_t mostPlaces = 128;
  ReduceKind kind = op.getKind();
  bool isExtremum = kind == ReduceKind::max || kind == ReduceKind::min;
  if ((kind != ReduceKind::sum && !isExtremum) || computeProduct(op.getWindow()) > mostPlaces)
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
