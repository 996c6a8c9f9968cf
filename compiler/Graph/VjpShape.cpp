// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of the ops that only move elements, which move the cotangents back.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"
#include "compiler/Graph/Means.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace weft;

/// The sum of `value` over `dims` where it is known to be zero, computed exactly and without
/// reading all elements. It has to be NaN if elements are NaN or infinite. The mean that was
/// subtracted from them is NaN then as well, so that along the dimensions of that mean one element
/// suffices.
static Value zeroSum(Cotangents &c, Value value, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> ofMean(dims);
  for (int64_t dim : dims) {
    SmallVector<int64_t> others(ofMean);
    llvm::erase(others, dim);
    if (sumsToZero(value, others))
      ofMean = others;
  }
  SmallVector<int64_t> limit(tensorType(value).getShape());
  SmallVector<int64_t> start(limit.size(), 0), stride(limit.size(), 1);
  for (int64_t dim : ofMean)
    limit[dim] = 1;
  return c.total(c.scale(c.slice(value, start, limit, stride), 0), dims);
}

static LogicalResult broadcastVjp(BroadcastInDimOp op, Cotangents &c) {
  RankedTensorType from = op.getOperand().getType(), to = op.getType();
  SmallVector<int64_t> summed = llvm::to_vector(llvm::seq<int64_t>(0, to.getRank())), kept;
  for (auto [size, place] : llvm::zip_equal(from.getShape(), op.getDims())) {
    if (size != to.getDimSize(place))
      continue;
    kept.push_back(place);
    llvm::erase(summed, place);
  }
  // The remaining dimensions are in the result's order; the operand may have them in another.
  SmallVector<int64_t> ordered = llvm::to_vector(kept);
  llvm::sort(ordered);
  SmallVector<int64_t> perm;
  for (int64_t place : kept)
    perm.push_back(llvm::find(ordered, place) - ordered.begin());
  bool isZero = tensorType(c.of()).getNumElements() != 0 && sumsToZero(c.of(), summed);
  Value sum = isZero ? zeroSum(c, c.of(), summed) : c.total(c.of(), summed);
  Value value = c.transpose(sum, perm);
  c.give(0, c.reshape(value, from.getShape()));
  return success();
}

static LogicalResult reshapeVjp(ReshapeOp op, Cotangents &c) {
  c.give(0, c.reshape(c.of(), op.getOperand().getType().getShape()));
  return success();
}

static LogicalResult transposeVjp(TransposeOp op, Cotangents &c) {
  c.give(0, c.transpose(c.of(), invertPermutationVector(op.getPerm())));
  return success();
}

static LogicalResult sliceVjp(SliceOp op, Cotangents &c) {
  c.give(0, c.place(c.of(), op.getStart(), op.getStride(), op.getOperand().getType().getShape()));
  return success();
}

static LogicalResult padVjp(PadOp op, Cotangents &c) {
  RankedTensorType type = op.getOperand().getType();
  SmallVector<int64_t> limit, stride(type.getRank(), 1);
  for (auto [size, low] : llvm::zip_equal(type.getShape(), op.getLow()))
    limit.push_back(low + size);
  Value inside = c.slice(c.of(), op.getLow(), limit, stride);
  c.give(0, inside);
  if (c.wants(1u)) {
    SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    c.give(1, c.sub(c.total(c.of(), all), c.total(inside, all)));
  }
  return success();
}

static LogicalResult concatVjp(ConcatOp op, Cotangents &c) {
  RankedTensorType type = op.getType();
  SmallVector<int64_t> start(type.getRank(), 0), limit(type.getShape()), stride(type.getRank(), 1);
  int64_t dim = op.getDim(), at = 0;
  for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
    start[dim] = at;
    at += tensorType(operand).getDimSize(dim);
    limit[dim] = at;
    if (c.wants(static_cast<unsigned>(number)))
      c.give(static_cast<unsigned>(number), c.slice(c.of(), start, limit, stride));
  }
  return success();
}

static LogicalResult reverseVjp(ReverseOp op, Cotangents &c) {
  c.give(0, c.create<ReverseOp>(c.of(), op.getDims()));
  return success();
}

/// A layout never changes values, and cotangents have no layout.
static LogicalResult relayoutVjp(RelayoutOp, Cotangents &c) {
  c.give(0, c.of());
  return success();
}

void weft::deriveShape(MLIRContext *context) {
  derive<BroadcastInDimOp, broadcastVjp>(context);
  derive<ReshapeOp, reshapeVjp>(context);
  derive<TransposeOp, transposeVjp>(context);
  derive<SliceOp, sliceVjp>(context);
  derive<PadOp, padVjp>(context);
  derive<ConcatOp, concatVjp>(context);
  derive<ReverseOp, reverseVjp>(context);
  derive<RelayoutOp, relayoutVjp>(context);
}
