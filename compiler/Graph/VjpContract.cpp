// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of sums of products, which are contractions and convolutions themselves.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace weft;

namespace {

/// One operand of a contraction, with its batch, contracted and free dimensions.
struct Side {
  Side(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract)
      : value(value), batch(batch), contract(contract) {
    for (int64_t dim : llvm::seq(tensorType(value).getRank()))
      if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
        free.push_back(dim);
  }
  Value value;
  ArrayRef<int64_t> batch, contract;
  SmallVector<int64_t> free;
};

} // namespace

/// Nothing is summed: multiplies every element of `g`, which extends along the batch and free
/// dimensions of `side`, by every element of `other` in the same batch. The dimensions of the
/// result are those of `side` in the order `origin`.
static Value outerProduct(Cotangents &c, Value g, const Side &other, const Side &side,
                          ArrayRef<int64_t> origin) {
  ArrayRef<int64_t> shape = tensorType(side.value).getShape();
  int64_t batch = side.batch.size(), rank = shape.size();
  int64_t leading = batch + static_cast<int64_t>(side.free.size());
  SmallVector<int64_t> perm(other.batch), sizes, placesOfOther, placesOfG;
  SmallVector<int64_t> contracted(other.contract);
  llvm::sort(contracted);
  llvm::append_range(perm, contracted);
  for (int64_t dim : origin)
    sizes.push_back(shape[dim]);
  llvm::append_range(placesOfG, llvm::seq<int64_t>(0, leading));
  llvm::append_range(placesOfOther, llvm::seq<int64_t>(0, batch));
  llvm::append_range(placesOfOther, llvm::seq(leading, rank));
  auto type = RankedTensorType::get(sizes, tensorType(g).getElementType());
  Value spread = c.create<BroadcastInDimOp>(type, g, placesOfG);
  Value values = c.transpose(other.value, perm);
  return c.mul(spread, c.create<BroadcastInDimOp>(type, values, placesOfOther));
}

/// The cotangent of `side`: the contraction of the result's cotangent with `other` over the free
/// dimensions of `other`. In the result's cotangent these are the dimensions `freeOfOther`, and the
/// free dimensions of `side` are `freeOfSide`.
static Value cotangentOf(Cotangents &c, const Side &side, const Side &other,
                         ArrayRef<int64_t> freeOfSide, ArrayRef<int64_t> freeOfOther) {
  SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, side.batch.size()));
  Value g = c.leave(c.of(), tensorType(other.value).getElementType());
  // The dimensions of `side` in the order in which the contraction gives them; contracted ones in
  // the order of `other`.
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (auto [theirs, ours] : llvm::zip_equal(other.contract, side.contract))
    pairs.emplace_back(theirs, ours);
  llvm::sort(pairs);
  SmallVector<int64_t> contracted = llvm::to_vector(llvm::make_second_range(pairs));
  SmallVector<int64_t> origin(side.batch);
  // Of the two orders of operands, takes the one that needs no transposition, if there is one.
  bool contractedFirst =
      !contracted.empty() && !side.free.empty() && contracted.front() < side.free.front();
  Value product;
  if (other.free.empty()) {
    // Without free dimensions of the other operand there is nothing to sum over.
    llvm::append_range(origin, side.free);
    llvm::append_range(origin, contracted);
    product = outerProduct(c, g, other, side, origin);
  } else if (contractedFirst) {
    llvm::append_range(origin, contracted);
    llvm::append_range(origin, side.free);
    product = c.create<DotGeneralOp>(other.value, g, other.batch, batch, other.free, freeOfOther);
  } else {
    llvm::append_range(origin, side.free);
    llvm::append_range(origin, contracted);
    product = c.create<DotGeneralOp>(g, other.value, batch, other.batch, freeOfOther, other.free);
  }
  SmallVector<int64_t> perm;
  for (int64_t dim : llvm::seq<int64_t>(0, origin.size()))
    perm.push_back(llvm::find(origin, dim) - origin.begin());
  return c.transpose(product, perm);
}

static LogicalResult dotGeneralVjp(DotGeneralOp op, Cotangents &c) {
  Side lhs(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
  Side rhs(op.getRhs(), op.getRhsBatch(), op.getRhsContract());
  int64_t batch = lhs.batch.size(), free = batch + lhs.free.size();
  SmallVector<int64_t> freeOfLhs = llvm::to_vector(llvm::seq(batch, free));
  SmallVector<int64_t> freeOfRhs =
      llvm::to_vector(llvm::seq<int64_t>(free, free + static_cast<int64_t>(rhs.free.size())));
  if (c.wants(0u))
    c.give(0, cotangentOf(c, lhs, rhs, freeOfLhs, freeOfRhs));
  if (c.wants(1u))
    c.give(1, cotangentOf(c, rhs, lhs, freeOfRhs, freeOfLhs));
  return success();
}

/// Rearranges (g * a, b, s...) to (g * b, a, s...), where g is the number of groups.
static Value swapInGroups(Cotangents &c, Value value, int64_t groups) {
  SmallVector<int64_t> shape(tensorType(value).getShape());
  int64_t members = shape[0] / groups, others = shape[1];
  SmallVector<int64_t> split{groups, members}, perm{0, 2, 1}, joined{groups * others, members};
  llvm::append_range(split, ArrayRef(shape).drop_front(1));
  llvm::append_range(joined, ArrayRef(shape).drop_front(2));
  for (int64_t dim : llvm::seq<int64_t>(2, shape.size()))
    perm.push_back(dim + 1);
  return c.reshape(c.transpose(c.reshape(value, split), perm), joined);
}

/// Rearranges (n, g * c, s...) to (c, g * n, s...), where g is the number of groups.
static Value batchToChannels(Cotangents &c, Value value, int64_t groups) {
  SmallVector<int64_t> shape(tensorType(value).getShape());
  int64_t batch = shape[0], channels = shape[1] / groups;
  SmallVector<int64_t> split{batch, groups, channels}, perm{2, 1, 0},
      joined{channels, groups * batch};
  llvm::append_range(split, ArrayRef(shape).drop_front(2));
  llvm::append_range(joined, ArrayRef(shape).drop_front(2));
  for (int64_t dim : llvm::seq<int64_t>(2, shape.size()))
    perm.push_back(dim + 1);
  return c.reshape(c.transpose(c.reshape(value, split), perm), joined);
}

/// The input's cotangent: the result's cotangent, dilated by the strides, convolved with the
/// reversed weight.
static Value inputCotangent(ConvOp op, Cotangents &c) {
  RankedTensorType input = op.getInput().getType(), weight = op.getWeight().getType();
  RankedTensorType result = op.getType();
  int64_t rank = input.getRank();
  SmallVector<int64_t> spatial = llvm::to_vector(llvm::seq<int64_t>(2, rank)), none(rank - 2, 0),
                       ones(rank - 2, 1);
  SmallVector<int64_t> start{0, 0}, stride{1, 1}, shape{result.getDimSize(0), result.getDimSize(1)};
  SmallVector<int64_t> low{0, 0}, high{0, 0};
  for (int64_t index : llvm::seq(rank - 2)) {
    int64_t extent = (weight.getDimSize(index + 2) - 1) * op.getDilations()[index];
    int64_t spread = (result.getDimSize(index + 2) - 1) * op.getStrides()[index] + 1;
    start.push_back(0);
    stride.push_back(op.getStrides()[index]);
    shape.push_back(spread);
    low.push_back(extent - op.getPadLow()[index]);
    // The result needs as many elements as the input had, so that elements which the strides left
    // over are padding.
    high.push_back(input.getDimSize(index + 2) + extent - spread - low.back());
  }
  Value g =
      c.padZeros(c.place(c.leave(c.of(), input.getElementType()), start, stride, shape), low, high);
  Value turned = swapInGroups(c, c.create<ReverseOp>(op.getWeight(), spatial), op.getGroups());
  return c.create<ConvOp>(g, turned, ones, none, none, op.getDilations(), op.getGroups());
}

/// The cotangent of those elements of a strided convolution's input whose indices are `phase`
/// modulo the stride along each spatial dimension. Only every stride-th tap of the weight reaches
/// them, so that this is the convolution of the result's cotangent with these taps, reversed, of
/// shape (n, c, q...).
static Value phaseCotangent(ConvOp op, Cotangents &c, Value g, ArrayRef<int64_t> phase,
                            ArrayRef<int64_t> counts) {
  RankedTensorType weight = op.getWeight().getType(), result = op.getType();
  int64_t rank = weight.getRank();
  SmallVector<int64_t> start{0, 0}, limit{weight.getDimSize(0), weight.getDimSize(1)}, stride{1, 1},
      low{0, 0}, high{0, 0}, shape{result.getDimSize(0), op.getInput().getType().getDimSize(1)};
  bool isEmpty = false;
  for (int64_t index : llvm::seq(rank - 2)) {
    int64_t step = op.getStrides()[index], first = phase[index] + op.getPadLow()[index];
    int64_t size = weight.getDimSize(index + 2), begin = first % step;
    int64_t taps = begin < size ? (size - begin + step - 1) / step : 0;
    isEmpty |= taps == 0;
    start.push_back(begin);
    limit.push_back(size);
    stride.push_back(step);
    low.push_back(taps - 1 - first / step);
    high.push_back(counts[index] + first / step - result.getDimSize(index + 2));
    shape.push_back(counts[index]);
  }
  if (isEmpty) {
    auto type = RankedTensorType::get(shape, tensorType(g).getElementType());
    return c.create<ConstantOp>(
        DenseElementsAttr::get(type, FloatAttr::get(type.getElementType(), 0.0)));
  }
  SmallVector<int64_t> spatial = llvm::to_vector(llvm::seq<int64_t>(2, rank)), none(rank - 2, 0),
                       ones(rank - 2, 1);
  Value taps = c.create<ReverseOp>(c.slice(op.getWeight(), start, limit, stride), spatial);
  taps = swapInGroups(c, taps, op.getGroups());
  return c.create<ConvOp>(c.padZeros(g, low, high), taps, ones, none, none, ones, op.getGroups());
}

/// The input's cotangent of a strided convolution, phase by phase, so that nothing is multiplied by
/// the zeros that a dilated cotangent has between its elements.
static Value stridedInputCotangent(ConvOp op, Cotangents &c) {
  RankedTensorType input = op.getInput().getType();
  int64_t rank = input.getRank(), dims = rank - 2;
  ArrayRef<int64_t> strides = op.getStrides();
  SmallVector<int64_t> counts, split(strides), perm{dims, dims + 1},
      joined{input.getDimSize(0), input.getDimSize(1)};
  for (auto [size, step] : llvm::zip_equal(input.getShape().drop_front(2), strides)) {
    counts.push_back((size + step - 1) / step);
    joined.push_back(counts.back() * step);
  }
  Value g = c.leave(c.of(), input.getElementType());
  SmallVector<int64_t> phases = computeStrides(strides);
  SmallVector<Value> parts;
  for (int64_t phase : llvm::seq(computeProduct(strides))) {
    Value part = phaseCotangent(op, c, g, delinearize(phase, phases), counts);
    SmallVector<int64_t> shape{1};
    llvm::append_range(shape, tensorType(part).getShape());
    parts.push_back(c.reshape(part, shape));
  }
  // Moves (phases..., n, c, counts...) to (n, c, count, phase, ...).
  llvm::append_range(split, tensorType(parts[0]).getShape().drop_front());
  for (int64_t dim : llvm::seq(dims))
    llvm::append_values(perm, dims + 2 + dim, dim);
  Value whole = c.reshape(c.create<ConcatOp>(parts, 0), split);
  whole = c.reshape(c.transpose(whole, perm), joined);
  SmallVector<int64_t> start(rank, 0), ones(rank, 1);
  return c.slice(whole, start, input.getShape(), ones);
}

/// The convolution of `input`, of shape (c, n, s...), with the result's cotangent `g`, of shape (o,
/// n, q...), where strides and dilations are exchanged. The result has the shape (c, o, k...),
/// perhaps with extra elements at the end of the window, where the strides left some of the input
/// over.
static Value windowSums(ConvOp op, Cotangents &c, Value input, Value g) {
  return c.create<ConvOp>(input, g, op.getDilations(), op.getPadLow(), op.getPadHigh(),
                          op.getStrides(), op.getGroups());
}

/// As windowSums for a strided window, in the shape (c, o, k...): the taps with index `phase`
/// modulo the strides read every stride-th element of the input, so that the cotangent is not
/// dilated.
static Value phaseSums(ConvOp op, Cotangents &c, Value padded, Value g, ArrayRef<int64_t> phase) {
  ArrayRef<int64_t> window = op.getWeight().getType().getShape(), counts = tensorType(g).getShape();
  SmallVector<int64_t> start{0, 0}, stride{1, 1},
      limit(tensorType(padded).getShape().take_front(2));
  SmallVector<int64_t> places{0, 0}, steps{1, 1}, shape{limit[0], counts[0]};
  for (int64_t dim : llvm::seq<int64_t>(2, window.size())) {
    int64_t step = op.getStrides()[dim - 2], first = phase[dim - 2];
    int64_t taps = (window[dim] - first + step - 1) / step;
    start.push_back(first);
    limit.push_back(first + step * (counts[dim] + taps - 2) + 1);
    stride.push_back(step);
    places.push_back(first);
    steps.push_back(step);
    shape.push_back(window[dim]);
  }
  SmallVector<int64_t> none(window.size() - 2, 0), ones(window.size() - 2, 1);
  Value part = c.slice(padded, start, limit, stride);
  Value sums = c.create<ConvOp>(part, g, ones, none, none, ones, op.getGroups());
  return c.place(sums, places, steps, shape);
}

static Value stridedWindowSums(ConvOp op, Cotangents &c, Value input, Value g) {
  ArrayRef<int64_t> strides = op.getStrides();
  ArrayRef<int64_t> window = op.getWeight().getType().getShape().drop_front(2);
  SmallVector<int64_t> low{0, 0}, high{0, 0}, tapPhases;
  llvm::append_range(low, op.getPadLow());
  llvm::append_range(high, op.getPadHigh());
  Value padded = c.padZeros(input, low, high);
  for (auto [step, size] : llvm::zip_equal(strides, window))
    tapPhases.push_back(std::min(step, size));
  SmallVector<int64_t> places = computeStrides(tapPhases);
  Value sums;
  for (int64_t phase : llvm::seq(computeProduct(tapPhases))) {
    Value part = phaseSums(op, c, padded, g, delinearize(phase, places));
    sums = sums ? c.add(sums, part) : part;
  }
  return sums;
}

/// The weight's cotangent for windows of one element, as a matrix product with one row for each
/// pixel.
static Value pointwiseWeightCotangent(ConvOp op, Cotangents &c) {
  RankedTensorType weight = op.getWeight().getType();
  Value g = c.leave(c.of(), weight.getElementType());
  ArrayRef<int64_t> counts = tensorType(g).getShape();
  int64_t rank = weight.getRank();
  SmallVector<int64_t> low{0, 0}, high{0, 0}, start(rank, 0), stride{1, 1}, perm{0};
  llvm::append_range(low, op.getPadLow());
  llvm::append_range(high, op.getPadHigh());
  llvm::append_range(stride, op.getStrides());
  Value input = c.padZeros(op.getInput(), low, high);
  SmallVector<int64_t> limit(tensorType(input).getShape());
  for (int64_t dim : llvm::seq<int64_t>(2, rank)) {
    limit[dim] = stride[dim] * (counts[dim] - 1) + 1;
    perm.push_back(dim);
  }
  perm.push_back(1);
  auto rows = [&](Value image) {
    ArrayRef<int64_t> shape = tensorType(image).getShape();
    int64_t channels = shape[1], elements = tensorType(image).getNumElements();
    return c.reshape(c.transpose(image, perm), {elements / channels, channels});
  };
  auto none = ArrayRef<int64_t>{};
  constexpr int64_t first = 0;
  Value product = c.create<DotGeneralOp>(rows(g), rows(c.slice(input, start, limit, stride)), none,
                                         none, ArrayRef(first), ArrayRef(first));
  return c.reshape(product, weight.getShape());
}

/// The weight's cotangent: batch and channels are exchanged, and each tap is the sum over what the
/// window read at that tap.
static Value weightCotangent(ConvOp op, Cotangents &c, bool hasPhases) {
  RankedTensorType weight = op.getWeight().getType();
  auto isOne = [](int64_t size) { return size == 1; };
  bool isEmpty = op.getType().getNumElements() == 0 || weight.getNumElements() == 0;
  if (op.getGroups() == 1 && !isEmpty && llvm::all_of(weight.getShape().drop_front(2), isOne))
    return pointwiseWeightCotangent(op, c);
  int64_t rank = weight.getRank();
  Value input = batchToChannels(c, op.getInput(), op.getGroups());
  Value g = c.leave(c.of(), weight.getElementType());
  SmallVector<int64_t> swap{1, 0};
  llvm::append_range(swap, llvm::seq<int64_t>(2, rank));
  g = c.transpose(g, swap);
  Value product = hasPhases ? stridedWindowSums(op, c, input, g) : windowSums(op, c, input, g);
  SmallVector<int64_t> start(rank, 0), limit(tensorType(product).getShape()), stride(rank, 1);
  for (int64_t dim : llvm::seq<int64_t>(2, rank))
    limit[dim] = weight.getDimSize(dim);
  return c.transpose(c.slice(product, start, limit, stride), swap);
}

static LogicalResult convVjp(ConvOp op, Cotangents &c) {
  auto isOne = [](int64_t number) { return number == 1; };
  bool hasPhases = llvm::all_of(op.getDilations(), isOne) && !llvm::all_of(op.getStrides(), isOne);
  if (c.wants(0u))
    c.give(0, hasPhases ? stridedInputCotangent(op, c) : inputCotangent(op, c));
  if (c.wants(1u))
    c.give(1, weightCotangent(op, c, hasPhases));
  return success();
}

/// The cotangent of the matrices: for each group the product of its rows, transposed, with their
/// cotangents, where the rows of other groups count as zeros.
static Value groupedMatrices(GroupedDotOp op, Cotangents &c) {
  RankedTensorType rows = op.getRows().getType(), weights = op.getWeights().getType();
  auto ends = tensorType(op.getEnds()).getElementType();
  int64_t groups = weights.getDimSize(0), count = rows.getDimSize(0);
  auto byGroup = RankedTensorType::get({groups, count}, ends);
  Value row = c.create<IotaOp>(byGroup, 1);
  Value end = c.create<BroadcastInDimOp>(byGroup, op.getEnds(), ArrayRef<int64_t>{0});
  // A group begins where the previous one ends. A group whose end is before its begin has no rows.
  Value begin = c.padZeros(c.slice(end, {0, 0}, {groups - 1, count}, {1, 1}), {1, 0}, {0, 0});
  Value inside = c.create<AndOp>(c.compare(ComparePredicate::ge, row, begin),
                                 c.compare(ComparePredicate::lt, row, end));
  auto spread = RankedTensorType::get({groups, count, rows.getDimSize(1)}, rows.getElementType());
  Value own = c.create<BroadcastInDimOp>(spread, op.getRows(), ArrayRef<int64_t>{1, 2});
  own = c.where(c.broadcast(inside, own, {0, 1}), own);
  // The sums over rows, as (groups, k) x n.
  auto none = ArrayRef<int64_t>{};
  Value product =
      c.create<DotGeneralOp>(own, c.of(), none, none, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0});
  return c.transpose(product, {0, 2, 1});
}

static LogicalResult groupedDotVjp(GroupedDotOp op, Cotangents &c) {
  constexpr int64_t fewestColumns =
      48; // the kernel's minimum, compiler/Kernels/DotProduct/GroupedMatmul.cpp
  if (c.wants(0u) && op.getWeights().getType().getDimSize(2) < fewestColumns)
    return failure();
  if (c.wants(0u))
    c.give(0,
           c.create<GroupedDotOp>(c.of(), c.transpose(op.getWeights(), {0, 2, 1}), op.getEnds()));
  if (c.wants(1u))
    c.give(1, groupedMatrices(op, c));
  return success();
}

void weft::deriveContract(MLIRContext *context) {
  derive<DotGeneralOp, dotGeneralVjp>(context);
  derive<ConvOp, convVjp>(context);
  derive<GroupedDotOp, groupedDotVjp>(context);
}
