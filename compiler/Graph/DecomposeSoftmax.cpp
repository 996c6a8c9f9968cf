// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meaning of softmax, log_softmax and attention in primitive ops.
#include "compiler/Graph/AttentionWeights.h"
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"

#include <limits>

using namespace mlir;
using namespace weft;

using Replacement = FailureOr<SmallVector<Value>>;

static constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// x - max along `dim`, which keeps exp from overflowing.
static Value shiftByMax(ComputeBuilder &b, Value x, int64_t dim) {
  return b.create<SubOp>(x, b.unreduce(b.reduce(ReduceKind::max, x, dim), x, dim));
}

/// Whether `value` is only read as a contraction's operand, under whatever names.
static bool isOnlyContracted(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<ReshapeOp, TransposeOp, BroadcastInDimOp, SliceOp, RelayoutOp>(user))
      return isOnlyContracted(user->getResult(0));
    return isa<DotGeneralOp>(user);
  });
}

/// -inf in place of what exp makes less than 2^-100 of the largest weight, 1. In a sum of weights
/// nobody sees those, but as denormals, which masks of -100 make of them, each multiply-add takes
/// the time of a hundred others.
static Value dropVanishing(ComputeBuilder &b, Value shifted) {
  constexpr double least = -100 * 0.6931471805599453;
  if (!tensorType(shifted).getElementType().isF32())
    return shifted;
  Value vanishes = b.create<CmpOp>(ComparePredicate::lt, shifted, b.splat(shifted, least));
  return b.create<SelectOp>(vanishes, b.splat(shifted, minusInfinity), shifted);
}

static Value softmax(ComputeBuilder &b, Value x, int64_t dim, bool isContracted) {
  Value shifted = shiftByMax(b, x, dim);
  Value exp = b.create<ExpOp>(isContracted ? dropVanishing(b, shifted) : shifted);
  Value sum = b.unreduce(b.reduce(ReduceKind::sum, exp, dim), exp, dim);
  return b.create<DivOp>(exp, sum);
}

Replacement SoftmaxOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  Value weights = softmax(b, b.enter(getOperand()), getDim(), isOnlyContracted(getResult()));
  return SmallVector<Value>{b.leave(weights, element)};
}

Replacement LogSoftmaxOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  int64_t dim = getDim();
  Value shifted = shiftByMax(b, b.enter(getOperand()), dim);
  Value sum = b.reduce(ReduceKind::sum, b.create<ExpOp>(shifted), dim);
  Value logSum = b.unreduce(b.create<LogOp>(sum), shifted, dim);
  return SmallVector<Value>{b.leave(b.create<SubOp>(shifted, logSum), element)};
}

/// Softmax of weights along `dim`, whose rows of nothing but -inf are zero, not NaN.
static Value maskedSoftmax(ComputeBuilder &b, Value x, int64_t dim) {
  Value max = b.reduce(ReduceKind::max, x, dim);
  Value empty = b.create<CmpOp>(ComparePredicate::eq, max, b.splat(max, minusInfinity));
  Value finite = b.create<SelectOp>(empty, b.splat(max, 0.0), max);
  Value shifted = b.create<SubOp>(x, b.unreduce(finite, x, dim));
  Value exp = b.create<ExpOp>(dropVanishing(b, shifted));
  Value sum = b.reduce(ReduceKind::sum, exp, dim);
  Value divisor = b.create<SelectOp>(empty, b.splat(sum, 1.0), sum);
  return b.create<DivOp>(exp, b.unreduce(divisor, exp, dim));
}

/// Scores with -inf for every key after its query.
static Value hideFuture(ComputeBuilder &b, OpBuilder &builder, Value scores) {
  int64_t rank = tensorType(scores).getRank();
  auto positions = tensorType(scores).clone(builder.getI32Type());
  Value query = b.create<IotaOp>(positions, rank - 2), key = b.create<IotaOp>(positions, rank - 1);
  Value seen = b.create<CmpOp>(ComparePredicate::le, key, query);
  return b.create<SelectOp>(seen, scores, b.splat(scores, minusInfinity));
}

static Value applyMask(ComputeBuilder &b, Value scores, Value mask, double hidden) {
  if (layoutOf(tensorType(mask)))
    mask = b.create<RelayoutOp>(withLayout(tensorType(mask), {}), mask);
  if (tensorType(mask).getElementType().isInteger(1))
    return b.create<SelectOp>(mask, scores, b.splat(scores, hidden));
  return b.create<AddOp>(scores, b.enter(mask));
}

/// The leading dims, which queries, keys and values have in common.
static SmallVector<int64_t> batchDims(AttentionOp op) {
  return llvm::to_vector(llvm::seq<int64_t>(0, op.getType().getRank() - 2));
}

Value weft::attentionWeights(AttentionOp op, ComputeBuilder &b, OpBuilder &builder) {
  SmallVector<int64_t> batch = batchDims(op);
  int64_t columns = op.getType().getRank() - 1;
  Value scores = b.create<DotGeneralOp>(b.enter(op.getQuery()), b.enter(op.getKey()), batch, batch,
                                        columns, columns);
  scores = b.create<MulOp>(scores, b.splat(scores, op.getScale().convertToDouble()));
  if (op.getMask())
    scores =
        applyMask(b, scores, op.getMask(),
                  op.getHiddenScore() ? op.getHiddenScore()->convertToDouble() : minusInfinity);
  if (op.getCausal())
    scores = hideFuture(b, builder, scores);
  return op.getHiddenScore() ? softmax(b, scores, columns, /*isContracted=*/true)
                             : maskedSoftmax(b, scores, columns);
}

Replacement AttentionOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  SmallVector<int64_t> batch = batchDims(*this);
  int64_t rows = getType().getRank() - 2, columns = rows + 1;
  Value weights = attentionWeights(*this, b, builder);
  Value product = b.create<DotGeneralOp>(weights, b.enter(getValue()), batch, batch, columns, rows);
  product = b.leave(product, element);
  if (layoutOf(getType()))
    product = b.create<RelayoutOp>(getType(), product);
  return SmallVector<Value>{product};
}
