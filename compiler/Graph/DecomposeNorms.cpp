// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meaning of the norms in primitive ops. Variances come from two passes, the second
// over centred elements: the one-pass form loses all digits when the mean is large.
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"

using namespace mlir;
using namespace weft;

using Replacement = FailureOr<SmallVector<Value>>;

static SmallVector<int64_t> trailingDims(Value value, int64_t count) {
  int64_t rank = tensorType(value).getRank();
  return llvm::to_vector(llvm::seq(rank - count, rank));
}

/// (x - mean) / sqrt(var + eps) with the statistics over `dims`.
static Value normalize(ComputeBuilder &b, Value x, ArrayRef<int64_t> dims, double eps) {
  Value centred = b.create<SubOp>(x, b.unreduce(b.mean(x, dims), x, dims));
  Value variance = b.mean(b.create<MulOp>(centred, centred), dims);
  return b.create<MulOp>(centred, b.unreduce(b.inverseDeviation(variance, eps), x, dims));
}

/// x * weight + bias, where weight and bias lie along the dims `places` of x.
static Value applyAffine(ComputeBuilder &b, Value x, Value weight, Value bias,
                         ArrayRef<int64_t> places) {
  if (weight)
    x = b.create<MulOp>(x, b.broadcast(b.enter(weight), x, places));
  if (bias)
    x = b.create<AddOp>(x, b.broadcast(b.enter(bias), x, places));
  return x;
}

Replacement LayerNormOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  SmallVector<int64_t> dims = trailingDims(getOperand(), getNormalizedDims());
  Value y = normalize(b, b.enter(getOperand()), dims, getEps().convertToDouble());
  return SmallVector<Value>{b.leave(applyAffine(b, y, getWeight(), getBias(), dims), element)};
}

Replacement RmsNormOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  Value x = b.enter(getOperand());
  SmallVector<int64_t> dims = trailingDims(x, getNormalizedDims());
  Value square = b.mean(b.create<MulOp>(x, x), dims);
  Value inverse = b.inverseDeviation(square, getEps().convertToDouble());
  Value y = b.create<MulOp>(x, b.unreduce(inverse, x, dims));
  return SmallVector<Value>{b.leave(applyAffine(b, y, getWeight(), {}, dims), element)};
}

/// `layout` of (n, c, s...) for (n, groups, c / groups, s...) without a move of elements,
/// or row-major where channels are tiled.
static LayoutAttr splitChannels(LayoutAttr layout) {
  if (!layout || layout.getTileDim() == 1)
    return {};
  auto shifted = [](int64_t dim) { return dim > 1 ? dim + 1 : dim; };
  SmallVector<int64_t> order;
  for (int64_t dim : layout.getOrder()) {
    order.push_back(shifted(dim));
    if (dim == 1)
      order.push_back(2);
  }
  return LayoutAttr::get(layout.getContext(), order, shifted(layout.getTileDim()),
                         layout.getTileSize());
}

Replacement GroupNormOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  int64_t groups = getGroups(), members = getType().getDimSize(1) / groups;
  SmallVector<int64_t> shape(getType().getShape());
  shape[1] = groups;
  shape.insert(shape.begin() + 2, members);

  LayoutAttr layout = layoutOf(getType());
  Value x = b.reshape(b.enter(getOperand()), shape, splitChannels(layout));
  Value y = normalize(b, x, trailingDims(x, shape.size() - 2), getEps().convertToDouble());
  auto perChannel = [&](Value vector) {
    return vector ? b.reshape(b.enter(vector), {groups, members}) : Value();
  };
  y = applyAffine(b, y, perChannel(getWeight()), perChannel(getBias()), {1, 2});
  return SmallVector<Value>{b.leave(b.reshape(y, getType().getShape(), layout), element)};
}

Replacement BatchNormOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  Value scale = b.inverseDeviation(b.enter(getVariance()), getEps().convertToDouble());
  if (getWeight())
    scale = b.create<MulOp>(b.enter(getWeight()), scale);
  Value moved = b.create<MulOp>(b.enter(getMean()), scale);
  Value shift = getBias() ? b.create<SubOp>(b.enter(getBias()), moved) : b.create<NegOp>(moved);
  Value y = applyAffine(b, b.enter(getOperand()), scale, shift, {1});
  return SmallVector<Value>{b.leave(y, element)};
}
