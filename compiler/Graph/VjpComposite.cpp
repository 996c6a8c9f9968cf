// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of softmax, the norms and the activations that are single ops, by their own formulas,
// which are shorter and more exact than the derivatives of the ops that they decompose into.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"
#include "compiler/Graph/Means.h"
#include "compiler/Graph/Normalization.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <cmath>

using namespace mlir;
using namespace weft;

/// Gives operand `value` the cotangent `cotangent`, converted from the wider type that it is
/// computed in.
static void giveNarrow(Cotangents &c, Value value, Value cotangent) {
  c.give(value, c.leave(cotangent, tensorType(value).getElementType()));
}

static LogicalResult softmaxVjp(SoftmaxOp op, Cotangents &c) {
  int64_t dim = op.getDim();
  Value y = c.enter(op.getResult()), product = c.mul(c.enter(c.of()), y);
  Value sum = c.unreduce(c.reduce(ReduceKind::sum, product, dim), product, dim);
  giveNarrow(c, op.getOperand(), c.sub(product, c.mul(y, sum)));
  return success();
}

static LogicalResult logSoftmaxVjp(LogSoftmaxOp op, Cotangents &c) {
  int64_t dim = op.getDim();
  Value g = c.enter(c.of()), weights = c.create<ExpOp>(c.enter(op.getResult()));
  Value sum = c.unreduce(c.reduce(ReduceKind::sum, g, dim), g, dim);
  giveNarrow(c, op.getOperand(), c.sub(g, c.mul(weights, sum)));
  return success();
}

/// The dimensions of `value` that are not among `dims`.
static SmallVector<int64_t> otherDims(Value value, ArrayRef<int64_t> dims) {
  return llvm::filter_to_vector(llvm::seq(tensorType(value).getRank()),
                                [&](int64_t dim) { return !llvm::is_contained(dims, dim); });
}

/// Gives weight and bias, which extend along the dimensions `places`, their cotangents, where
/// `normalized` is the norm's value without them. Returns the cotangent of `normalized`.
static Value affineVjp(Cotangents &c, Value g, Value normalized, Value weight, Value bias,
                       ArrayRef<int64_t> places) {
  SmallVector<int64_t> summed = otherDims(g, places);
  auto sum = [&](Value value) {
    return summed.empty() ? value : c.reduce(ReduceKind::sum, value, summed);
  };
  if (c.wants(bias))
    giveNarrow(c, bias, c.reshape(sum(g), tensorType(bias).getShape()));
  if (c.wants(weight))
    giveNarrow(c, weight, c.reshape(sum(c.mul(g, normalized)), tensorType(weight).getShape()));
  if (!weight)
    return g;
  SmallVector<int64_t> shape;
  for (int64_t place : places)
    shape.push_back(tensorType(g).getDimSize(place));
  return c.mul(g, c.broadcast(c.reshape(c.enter(weight), shape), g, places));
}

/// The cotangent of x, given the cotangent `g` of `normalized` = (x - mean) * `inverse`. A norm
/// that does not centre has no mean.
static Value normalizationVjp(Cotangents &c, Value g, Value normalized, Value inverse,
                              ArrayRef<int64_t> dims, bool centres) {
  Value along = c.unreduce(c.mean(c.mul(g, normalized), dims), g, dims);
  Value rest = c.sub(g, c.mul(normalized, along));
  if (centres)
    rest = c.sub(rest, c.unreduce(c.mean(g, dims), g, dims));
  return c.mul(rest, c.unreduce(inverse, g, dims));
}

static LogicalResult layerNormVjp(LayerNormOp op, Cotangents &c) {
  Value x = c.enter(op.getOperand()), g = c.enter(c.of());
  SmallVector<int64_t> dims = trailingDims(x, op.getNormalizedDims());
  Normalized parts = normalizedOver(c, x, dims, op.getEps().convertToDouble());
  Value normalized = c.mul(parts.centred, c.unreduce(parts.inverse, x, dims));
  g = affineVjp(c, g, normalized, op.getWeight(), op.getBias(), dims);
  if (c.wants(0u))
    giveNarrow(c, op.getOperand(), normalizationVjp(c, g, normalized, parts.inverse, dims, true));
  return success();
}

static LogicalResult rmsNormVjp(RmsNormOp op, Cotangents &c) {
  Value x = c.enter(op.getOperand()), g = c.enter(c.of());
  SmallVector<int64_t> dims = trailingDims(x, op.getNormalizedDims());
  Value inverse = inverseRootMeanSquare(c, x, dims, op.getEps().convertToDouble());
  Value normalized = c.mul(x, c.unreduce(inverse, x, dims));
  g = affineVjp(c, g, normalized, op.getWeight(), {}, dims);
  if (c.wants(0u))
    giveNarrow(c, op.getOperand(), normalizationVjp(c, g, normalized, inverse, dims, false));
  return success();
}

/// A group norm is a layer norm of x, viewed as (n, groups, c / groups, s), over the last two
/// dimensions, with weight and bias along the channels.
static LogicalResult groupNormVjp(GroupNormOp op, Cotangents &c) {
  ArrayRef<int64_t> shape = op.getType().getShape();
  int64_t groups = op.getGroups(), members = shape[1] / groups;
  SmallVector<int64_t> split{shape[0], groups, members, computeProduct(shape.drop_front(2))};
  Value x = c.reshape(c.enter(op.getOperand()), split), g = c.reshape(c.enter(c.of()), split);
  SmallVector<int64_t> dims{2, 3};
  Normalized parts = normalizedOver(c, x, dims, op.getEps().convertToDouble());
  Value normalized = c.mul(parts.centred, c.unreduce(parts.inverse, x, dims));
  g = affineVjp(c, g, normalized, op.getWeight(), op.getBias(), {1, 2});
  if (c.wants(0u)) {
    Value whole = normalizationVjp(c, g, normalized, parts.inverse, dims, true);
    giveNarrow(c, op.getOperand(), c.reshape(whole, shape));
  }
  return success();
}

/// If `sum` is sum(x, dims), the result is x; otherwise it is null.
static Value summedOver(Value sum, ArrayRef<int64_t> dims) {
  auto reduce = withoutViews(sum).getDefiningOp<ReduceOp>();
  bool isSum = reduce && reduce.getKind() == ReduceKind::sum && reduce.getDims() == dims;
  return isSum ? reduce.getOperand() : Value();
}

/// If `square` is x * x, the result is x; otherwise it is null.
static Value squared(Value square) {
  auto op = square ? square.getDefiningOp<MulOp>() : MulOp();
  return op && op.getLhs() == op.getRhs() ? op.getLhs() : Value();
}

/// Whether mean and variance of `op` are the statistics over `dims` of the x that it normalizes:
/// sum(x) / count and sum((x - mean)^2) / count. The variance may be corrected for the rounding of
/// the mean: (sum((x - mean)^2) - (sum(x - mean))^2 / count) / count.
static bool hasOwnStatistics(BatchNormOp op, ArrayRef<int64_t> dims, int64_t count) {
  Value x = withoutViews(op.getOperand());
  Value total = dividedBy(op.getMean(), count), squares = dividedBy(op.getVariance(), count);
  Value summed = total ? summedOver(total, dims) : Value();
  if (!summed || !squares || withoutViews(summed) != x)
    return false;
  Value lacking;
  if (auto corrected = withoutViews(squares).getDefiningOp<SubOp>()) {
    Value rest = squared(dividedBy(corrected.getRhs(), count));
    if (!rest || !(lacking = summedOver(rest, dims)))
      return false;
    squares = corrected.getLhs();
  }
  Value centred = squared(summedOver(squares, dims));
  auto difference = centred ? centred.getDefiningOp<SubOp>() : SubOp();
  if (!difference || withoutViews(difference.getLhs()) != x || (lacking && lacking != centred))
    return false;
  auto spread = difference.getRhs().getDefiningOp<BroadcastInDimOp>();
  return spread && withoutViews(spread.getOperand()) == withoutViews(op.getMean());
}

/// Mean and variance are operands, so that in general the ops that compute them have their own
/// derivatives. If they are the statistics of x itself, all of that is put into the cotangent of x
/// and they get none: this takes two sums over x, which give the gradients of weight and bias as
/// well, and one pass over its elements.
static LogicalResult batchNormVjp(BatchNormOp op, Cotangents &c) {
  Value x = c.enter(op.getOperand()), g = c.enter(c.of());
  SmallVector<int64_t> channels{1}, others = otherDims(x, channels);
  auto spread = [&](Value value) { return c.broadcast(value, x, channels); };
  auto sum = [&](Value value) { return c.reduce(ReduceKind::sum, value, others); };
  int64_t channelCount = std::max<int64_t>(tensorType(x).getDimSize(1), 1);
  int64_t count = tensorType(x).getNumElements() / channelCount;
  bool isOwn = !others.empty() && hasOwnStatistics(op, others, count);
  Value inverse = c.inverseDeviation(c.enter(op.getVariance()), op.getEps().convertToDouble());
  Value scale = op.getWeight() ? c.mul(c.enter(op.getWeight()), inverse) : inverse;
  if (c.wants(0u) && !isOwn)
    giveNarrow(c, op.getOperand(), c.mul(g, spread(scale)));
  if (c.wants(op.getBias()))
    giveNarrow(c, op.getBias(), sum(g));
  if (c.wants(op.getMean()) && !isOwn)
    giveNarrow(c, op.getMean(), c.neg(c.mul(sum(g), scale)));
  bool wantsStatistics = isOwn ? c.wants(0u) : c.wants(op.getVariance());
  if (!c.wants(op.getWeight()) && !wantsStatistics)
    return success();
  Value centred = c.sub(x, spread(c.enter(op.getMean())));
  Value normalizedSum = c.mul(sum(c.mul(g, centred)), inverse);
  if (c.wants(op.getWeight()))
    giveNarrow(c, op.getWeight(), normalizedSum);
  if (!wantsStatistics)
    return success();
  if (!isOwn) {
    giveNarrow(c, op.getVariance(), c.scale(c.mul(normalizedSum, c.mul(scale, inverse)), -0.5));
    return success();
  }
  Value along = c.scale(c.mul(normalizedSum, inverse), 1.0 / count);
  Value rest = c.sub(c.sub(g, spread(c.scale(sum(g), 1.0 / count))), c.mul(centred, spread(along)));
  giveNarrow(c, op.getOperand(), c.mul(rest, spread(scale)));
  return success();
}

/// The slope of x Phi(x): Phi(x) + x phi(x).
static Value exactGeluSlope(Cotangents &c, Value x) {
  Value below = c.scale(c.shift(c.create<ErfOp>(c.scale(x, M_SQRT1_2)), 1), 0.5);
  Value bell = c.create<ExpOp>(c.scale(c.mul(x, x), -0.5));
  return c.add(below, c.mul(x, c.scale(bell, M_2_SQRTPI * M_SQRT1_2 * 0.5)));
}

/// With t = tanh(k (x + a x^3)), the slope is (1 + t) / 2 + x / 2 (1 - t^2) k (1 + 3 a x^2).
static Value tanhGeluSlope(Cotangents &c, Value x) {
  constexpr double k = M_SQRT2 * M_2_SQRTPI * 0.5, a = 0.044715;
  Value square = c.mul(x, x), cube = c.mul(square, x);
  Value t = c.create<TanhOp>(c.scale(c.add(x, c.scale(cube, a)), k));
  Value left = c.scale(c.shift(t, 1), 0.5);
  Value inner = c.scale(c.shift(c.scale(square, 3 * a), 1), k);
  Value right = c.mul(c.scale(x, 0.5), c.mul(c.sub(c.splat(t, 1), c.mul(t, t)), inner));
  return c.add(left, right);
}

static LogicalResult geluVjp(GeluOp op, Cotangents &c) {
  Value x = c.enter(op.getOperand());
  Value slope = op.getKind() == GeluKind::erf ? exactGeluSlope(c, x) : tanhGeluSlope(c, x);
  giveNarrow(c, op.getOperand(), c.mul(c.enter(c.of()), slope));
  return success();
}

static LogicalResult siluVjp(SiluOp op, Cotangents &c) {
  Value x = c.enter(op.getOperand()), s = c.create<SigmoidOp>(x);
  Value slope = c.mul(s, c.shift(c.mul(x, c.sub(c.splat(s, 1), s)), 1));
  giveNarrow(c, op.getOperand(), c.mul(c.enter(c.of()), slope));
  return success();
}

void weft::deriveComposite(MLIRContext *context) {
  derive<SoftmaxOp, softmaxVjp>(context);
  derive<LogSoftmaxOp, logSoftmaxVjp>(context);
  derive<LayerNormOp, layerNormVjp, /*repeats=*/true>(context);
  derive<RmsNormOp, rmsNormVjp, /*repeats=*/true>(context);
  derive<GroupNormOp, groupNormVjp, /*repeats=*/true>(context);
  derive<BatchNormOp, batchNormVjp>(context);
  derive<GeluOp, geluVjp>(context);
  derive<SiluOp, siluVjp>(context);
}
