// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of the ops that read and write where tensors of indices say, of sorts, and of what
// PyTorch runs.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"

using namespace mlir;
using namespace weft;

static LogicalResult gatherVjp(GatherOp op, Cotangents &c) {
  RankedTensorType type = op.getOperand().getType();
  // Many updates of one element are added: in the type computed in.
  Value updates = c.enter(c.of());
  auto wide = type.clone(tensorType(updates).getElementType());
  Value zeros = c.create<ConstantOp>(
      DenseElementsAttr::get(wide, FloatAttr::get(wide.getElementType(), 0.0)));
  Value sums =
      c.create<ScatterOp>(ScatterKind::sum, zeros, updates, op.getIndices(), op.getIndexedDims());
  c.give(0, c.leave(sums, type.getElementType()));
  return success();
}

/// `value`, of a scatter's updates, where its indices lie inside: the others have written nothing.
static Value whereInside(ScatterOp op, Cotangents &c, Value value) {
  Value inside;
  for (auto [indices, dim] : llvm::zip_equal(op.getIndices(), op.getIndexedDims())) {
    double size = op.getOperand().getType().getDimSize(dim);
    Value fits = c.create<AndOp>(c.compare(ComparePredicate::ge, indices, 0),
                                 c.compare(ComparePredicate::lt, indices, size));
    inside = inside ? c.create<AndOp>(inside, fits) : fits;
  }
  SmallVector<int64_t> places =
      llvm::to_vector(llvm::seq<int64_t>(0, tensorType(inside).getRank()));
  return c.where(c.broadcast(inside, value, places), value);
}

static LogicalResult scatterVjp(ScatterOp op, Cotangents &c) {
  bool sets = op.getKind() == ScatterKind::set;
  if (!sets && op.getKind() != ScatterKind::sum)
    return failure();
  if (c.wants(0u))
    c.give(0, sets ? c.create<ScatterOp>(ScatterKind::set, c.of(), c.splat(op.getUpdates(), 0),
                                         op.getIndices(), op.getIndexedDims())
                   : c.of());
  if (c.wants(1u)) {
    Value read = c.create<GatherOp>(c.of(), op.getIndices(), op.getIndexedDims());
    c.give(1, whereInside(op, c, read));
  }
  return success();
}

/// Sorted elements go back to where they stood.
static LogicalResult sortVjp(SortOp op, Cotangents &c) {
  if (!c.of(0))
    return success();
  RankedTensorType type = op.getOperand().getType(), places = tensorType(op.getIndices());
  SmallVector<Value> indices;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  for (int64_t dim : dims)
    indices.push_back(dim == static_cast<int64_t>(op.getDim()) ? Value(op.getIndices())
                                                               : c.create<IotaOp>(places, dim));
  c.give(0, c.create<ScatterOp>(ScatterKind::set, c.splat(op.getOperand(), 0), c.of(0),
                                ValueRange(indices), dims));
  return success();
}

/// Random numbers depend on no values.
static LogicalResult fallbackVjp(TorchFallbackOp op, Cotangents &) {
  StringRef name = op.getTarget();
  bool isRandom = llvm::any_of(ArrayRef<StringRef>{"aten.bernoulli.", "aten.rand.", "aten.randn.",
                                                   "aten.rand_like.", "aten.randn_like.",
                                                   "aten.empty.", "aten.empty_like."},
                               [&](StringRef prefix) { return name.starts_with(prefix); });
  return success(isRandom);
}

void weft::deriveIndex(MLIRContext *context) {
  derive<GatherOp, gatherVjp>(context);
  derive<ScatterOp, scatterVjp>(context);
  derive<SortOp, sortVjp>(context);
  derive<TorchFallbackOp, fallbackVjp>(context);
}
