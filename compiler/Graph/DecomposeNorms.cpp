// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meaning of the norms in primitive ops. Variances come from two passes, the second
// over centred elements: the one-pass form loses all digits when the mean is large. What rounding
// makes a mean lack would pass for a deviation: it is summed in f64, or put right.
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Normalization.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace weft;

using Replacement = FailureOr<SmallVector<Value>>;

SmallVector<int64_t> weft::trailingDims(Value value, int64_t count) {
  int64_t rank = tensorType(value).getRank();
  return llvm::to_vector(llvm::seq(rank - count, rank));
}

Normalized weft::normalizedOver(ComputeBuilder &b, Value x, ArrayRef<int64_t> dims, double eps) {
  Value centred = b.create<SubOp>(x, b.unreduce(b.exactMean(x, dims), x, dims));
  Value variance = b.mean(b.create<MulOp>(centred, centred), dims);
  return {centred, b.inverseDeviation(variance, eps)};
}

Value weft::inverseRootMeanSquare(ComputeBuilder &b, Value x, ArrayRef<int64_t> dims, double eps) {
  Value square = b.mean(b.create<MulOp>(x, x), dims);
  return b.inverseDeviation(square, eps);
}

/// (x - mean) / sqrt(var + eps) with the statistics over `dims`.
static Value normalize(ComputeBuilder &b, Value x, ArrayRef<int64_t> dims, double eps) {
  Normalized parts = normalizedOver(b, x, dims, eps);
  return b.create<MulOp>(parts.centred, b.unreduce(parts.inverse, x, dims));
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
  Value inverse = inverseRootMeanSquare(b, x, dims, getEps().convertToDouble());
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

/// Whether `dim` is the innermost in memory, where dims of one element have no place.
static bool liesInnermost(int64_t dim, RankedTensorType type) {
  LayoutAttr layout = layoutOf(type);
  if (!layout || layout.hasTile())
    return false;
  for (int64_t innermost : llvm::reverse(layout.getOrder()))
    if (type.getDimSize(innermost) != 1)
      return innermost == dim;
  return false;
}

/// For images with channels innermost, so that vectors run along channels: the mean of a group is
/// the mean of its channels' means, and every channel has a scale.
static Value normalizeChannelsLast(GroupNormOp norm, ComputeBuilder &b) {
  Value x = b.enter(norm.getOperand());
  int64_t rank = tensorType(x).getRank(), batch = tensorType(x).getDimSize(0),
          channels = tensorType(x).getDimSize(1), groups = norm.getGroups();
  SmallVector<int64_t> spatial = trailingDims(x, rank - 2);
  Value ofMembers;
  auto mean = [&](Value value) {
    ofMembers = b.reshape(b.mean(value, spatial), {batch, groups, channels / groups});
    return b.mean(ofMembers, {2});
  };
  auto ofChannels = [&](Value ofGroups) {
    return b.reshape(b.unreduce(ofGroups, ofMembers, {2}), {batch, channels});
  };
  auto centre = [&](Value average) -> Value {
    return b.create<SubOp>(x, b.unreduce(ofChannels(average), x, spatial));
  };
  // The mean of what the first mean leaves is what it lacks (T. Chan, G. Golub, R. LeVeque,
  // "Algorithms for computing the sample variance", 1983); f64 would halve the lanes of both sums.
  Value near = mean(x), centred = centre(near), lacking = mean(centred);
  Value square = mean(b.create<MulOp>(centred, centred));
  Value variance = b.create<SubOp>(square, b.create<MulOp>(lacking, lacking));
  variance = b.create<MaxOp>(variance, b.splat(variance, 0.0));
  centred = centre(b.create<AddOp>(near, lacking));
  Value scale = ofChannels(b.inverseDeviation(variance, norm.getEps().convertToDouble()));
  scale = applyAffine(b, scale, norm.getWeight(), {}, {1});
  Value scaled = b.create<MulOp>(centred, b.unreduce(scale, x, spatial));
  return applyAffine(b, scaled, {}, norm.getBias(), {1});
}

Replacement GroupNormOp::decompose(OpBuilder &builder) {
  Type element = getType().getElementType();
  ComputeBuilder b(builder, getLoc(), element);
  int64_t groups = getGroups(), members = getType().getDimSize(1) / groups;
  SmallVector<int64_t> shape(getType().getShape());
  shape[1] = groups;
  shape.insert(shape.begin() + 2, members);

  LayoutAttr layout = layoutOf(getType());
  if (!layout) // rows of an image may be shorter than a vector
    shape = {shape[0], groups, members, computeProduct(ArrayRef(shape).drop_front(3))};
  if (liesInnermost(1, getType())) {
    Value y = normalizeChannelsLast(*this, b);
    return SmallVector<Value>{b.leave(y, element)};
  }
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
