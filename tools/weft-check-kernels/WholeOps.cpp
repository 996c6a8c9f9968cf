// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ops of weft that emitters read whole, by their definitions.
#include "Interpreter.h"
#include "ScalarOps.h"
#include "compiler/Graph/Graph.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace weft;
using namespace weft::check;

static Number apply(const Computation &computation, const Number &x, const Number &y) {
  Number operands[] = {x, y};
  return computation(operands);
}

/// The number as an element of `type`.
static Number stored(Type type, Number number) {
  Type wide = Float64Type::get(type.getContext());
  return withErrors([type](const Number *x) { return Number::ofReal(roundedTo(type, x->real)); },
                    wide, type, 0)(&number);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// One attention, whose batch dims are flattened.
struct Attention {
  mutable AttentionOp op; ///< MLIR's accessors are not const
  const Tensor &query, &key, &value;
  const Tensor *mask;
  Type compute; ///< float32 for half precision
  int64_t queries, keys, depth, width;

  Computation add = plus(compute), subtract = minus(compute), multiply = times(compute),
              divide = over(compute), power = exponential(compute);

  /// The scores of a row; nothing for a key that does not count.
  SmallVector<std::optional<Number>> scores(int64_t batch, int64_t row) const;
  void run(int64_t batch, int64_t row, Number *results) const;
};
} // namespace

SmallVector<std::optional<Number>> Attention::scores(int64_t batch, int64_t row) const {
  SmallVector<std::optional<Number>> scores(keys);
  Number scale = Number::ofReal(op.getScale().convertToDouble());
  const Number *q = &query.numbers[(batch * queries + row) * depth];
  for (int64_t j = 0; j < keys; ++j) {
    if (op.getCausal() && j > row)
      continue;
    Number sum = Number::ofReal(0);
    for (int64_t d = 0; d < depth; ++d)
      sum = apply(add, sum, apply(multiply, q[d], key.numbers[(batch * keys + j) * depth + d]));
    sum = apply(multiply, sum, scale);
    if (mask) {
      const Number &bias = mask->numbers[(batch * queries + row) * keys + j];
      if (isa<FloatType>(mask->element))
        sum = apply(add, sum, bias);
      else if (!bias.integer && !op.getHiddenScore())
        continue;
      else if (!bias.integer)
        sum = Number::ofReal(op.getHiddenScore()->convertToDouble());
    }
    scores[j] = sum;
  }
  return scores;
}

void Attention::run(int64_t batch, int64_t row, Number *results) const {
  SmallVector<std::optional<Number>> weights = scores(batch, row);
  // Any shift that is near the largest score gives the same weights, so this one is exact.
  Number most = Number::ofReal(-HUGE_VAL);
  for (const std::optional<Number> &score : weights)
    if (score)
      most.real = std::max(most.real, score->real);
  Number total = Number::ofReal(0);
  std::fill_n(results, width, Number::ofReal(0));
  bool isHidden = most.real == -HUGE_VAL && !op.getHiddenScore();
  if (isHidden)
    return;
  for (auto [j, score] : llvm::enumerate(weights)) {
    if (!score)
      continue;
    Number shifted = apply(subtract, *score, most);
    Number weight = power(&shifted);
    total = apply(add, total, weight);
    for (int64_t e = 0; e < width; ++e)
      results[e] = apply(add, results[e],
                         apply(multiply, weight, value.numbers[(batch * keys + j) * width + e]));
  }
  for (int64_t e = 0; e < width; ++e)
    results[e] = stored(value.element, apply(divide, results[e], total));
}

static Tensors run(AttentionOp op, ArrayRef<TensorRef> x) {
  auto result = std::make_shared<Tensor>(op.getType());
  Type compute = op.getType().getElementType();
  if (compute.getIntOrFloatBitWidth() < 32)
    compute = Float32Type::get(op.getContext());
  ArrayRef<int64_t> q = x[0]->shape, v = x[2]->shape;
  Attention attention{
      op,      *x[0],           *x[1],           *x[2],    op.getMask() ? x[3].get() : nullptr,
      compute, q[q.size() - 2], v[v.size() - 2], q.back(), v.back()};
  int64_t rows = attention.queries;
  for (int64_t index = 0, end = result->size() / attention.width; index < end; ++index)
    attention.run(index / rows, index % rows, &result->numbers[index * attention.width]);
  return {result};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static Tensors run(GroupedDotOp op, ArrayRef<TensorRef> x) {
  auto result = std::make_shared<Tensor>(op.getType());
  Computation add = plus(result->element), multiply = times(result->element);
  int64_t rows = x[0]->shape[0], depth = x[0]->shape[1];
  int64_t groups = x[1]->shape[0], columns = x[1]->shape[1];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t group = -1;
    for (int64_t g = 0; g < groups; ++g) {
      int64_t start = g ? x[2]->numbers[g - 1].integer : 0;
      if (start <= row && row < x[2]->numbers[g].integer)
        group = g;
    }
    for (int64_t column = 0; column < columns; ++column) {
      Number sum = Number::ofReal(0);
      for (int64_t k = 0; group >= 0 && k < depth; ++k)
        sum = apply(add, sum, apply(multiply, x[0]->at({row, k}), x[1]->at({group, column, k})));
      result->at({row, column}) = sum;
    }
  }
  return {result};
}

/// As a plain convolution: what the transformed weight is made of decides.
static Tensors run(WinogradConvOp op, ArrayRef<TensorRef> x) {
  auto result = std::make_shared<Tensor>(op.getType());
  Computation add = plus(result->element), multiply = times(result->element);
  int64_t channels = x[0]->shape[1];
  forEachIndex(result->shape, [&](ArrayRef<int64_t> at) {
    Number sum = Number::ofReal(0);
    forEachIndex({channels, 3, 3}, [&](ArrayRef<int64_t> k) {
      sum = apply(add, sum,
                  apply(multiply, x[0]->at({at[0], k[0], at[2] + k[1], at[3] + k[2]}),
                        x[2]->at({at[1], k[0], k[1], k[2]})));
    });
    // The transforms add up to 16 pixels of a block and 9 weights, each by up to three roundings.
    sum.error *= 16;
    result->at(at) = sum;
  });
  return {result};
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Whether x comes before y in ascending order, with NaN behind all numbers.
static bool isLess(const Number &x, const Number &y, bool isReal) {
  if (!isReal)
    return x.integer < y.integer;
  return std::isnan(y.real) ? !std::isnan(x.real) : x.real < y.real;
}

/// Whether the order of two numbers may be another, given their errors.
static bool isOpen(const Number &x, const Number &y, bool isReal) {
  double apart = isReal ? std::fabs(x.real - y.real) : std::fabs(double(x.integer - y.integer));
  double errors = x.error + y.error;
  return errors > 0 && !(apart > errors);
}

static void sortLine(SortOp op, ArrayRef<Number> line, bool isReal, MutableArrayRef<Number> values,
                     MutableArrayRef<Number> indices) {
  SmallVector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  auto precedes = [&](int64_t i, int64_t j) {
    return op.getDescending() ? isLess(line[j], line[i], isReal) : isLess(line[i], line[j], isReal);
  };
  llvm::sort(order,
             [&](int64_t i, int64_t j) { return precedes(i, j) || (!precedes(j, i) && i < j); });
  for (size_t place = 0; place < values.size(); ++place) {
    const Number &number = line[order[place]];
    values[place] = number;
    indices[place] = Number::ofInteger(order[place]);
    auto compare = [&](size_t neighbour) {
      const Number &other = line[order[neighbour]];
      if (!isOpen(number, other, isReal))
        return;
      indices[place].error = undetermined;
      values[place].error = std::max(values[place].error, 2 * other.error + number.error);
    };
    if (place > 0)
      compare(place - 1);
    if (place + 1 < line.size())
      compare(place + 1);
  }
}

/// The start of each line along `dim`, with what lies before and behind that dim.
static void forEachLine(ArrayRef<int64_t> shape, int64_t dim,
                        function_ref<void(ArrayRef<int64_t> index)> visit) {
  SmallVector<int64_t> starts(shape);
  starts[dim] = std::min<int64_t>(1, starts[dim]);
  forEachIndex(starts, visit);
}

static Tensors run(SortOp op, ArrayRef<TensorRef> x) {
  auto values = std::make_shared<Tensor>(op.getValues().getType());
  auto indices = std::make_shared<Tensor>(op.getIndices().getType());
  int64_t dim = op.getDim(), count = op.getCount();
  bool isReal = isa<FloatType>(x[0]->element);
  forEachLine(x[0]->shape, dim, [&](ArrayRef<int64_t> start) {
    SmallVector<int64_t> index(start);
    SmallVector<Number> line, sorted(count), positions(count);
    for (index[dim] = 0; index[dim] < x[0]->shape[dim]; ++index[dim])
      line.push_back(x[0]->at(index));
    sortLine(op, line, isReal, sorted, positions);
    for (index[dim] = 0; index[dim] < count; ++index[dim]) {
      values->at(index) = sorted[index[dim]];
      indices->at(index) = positions[index[dim]];
    }
  });
  return {values, indices};
}

//===----------------------------------------------------------------------===//
// Combinations
//===----------------------------------------------------------------------===//

/// The kind of combination of elements of half precision is computed in float32 and rounded.
static Computation roundedCombination(StringRef kind, Type type) {
  auto floating = dyn_cast<FloatType>(type);
  if (!floating || floating.getWidth() >= 32)
    return combination(kind, type);
  Computation wide = combination(kind, Float32Type::get(type.getContext()));
  return [=](const Number *x) { return stored(type, wide(x)); };
}

static Tensors run(CumulativeOp op, ArrayRef<TensorRef> x) {
  auto result = std::make_shared<Tensor>(op.getType());
  Computation combine = combination(stringifyReduceKind(op.getKind()), result->element);
  int64_t dim = op.getDim();
  forEachLine(result->shape, dim, [&](ArrayRef<int64_t> start) {
    SmallVector<int64_t> index(start);
    Number total = x[0]->at(index);
    for (index[dim] = 0; index[dim] < result->shape[dim]; ++index[dim]) {
      if (index[dim])
        total = apply(combine, total, x[0]->at(index));
      result->at(index) = total;
    }
  });
  return {result};
}

static Tensors run(ScatterOp op, ArrayRef<TensorRef> x) {
  auto result = std::make_shared<Tensor>(*x[0]);
  Computation combine =
      op.getKind() == ScatterKind::set
          ? nullptr
          : roundedCombination(stringifyScatterKind(op.getKind()), result->element);
  ArrayRef<int64_t> dims = op.getIndexedDims();
  size_t indexRank = x[2]->shape.size();
  forEachIndex(x[1]->shape, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> target(result->rank(), -1);
    bool isInside = true;
    for (auto [number, dim] : llvm::enumerate(dims)) {
      target[dim] = x[2 + number]->at(at.take_front(indexRank)).integer;
      isInside &= target[dim] >= 0 && target[dim] < result->shape[dim];
    }
    if (!isInside)
      return;
    ArrayRef<int64_t> kept = at.drop_front(indexRank);
    for (int64_t dim = 0; dim < result->rank(); ++dim)
      if (!llvm::is_contained(dims, dim)) {
        target[dim] = kept.front();
        kept = kept.drop_front();
      }
    Number &element = result->at(target);
    element = combine ? apply(combine, element, x[1]->at(at)) : x[1]->at(at);
  });
  return {result};
}

/// Memory from an element on; what lies behind the last one is not known.
static Tensors run(AdvanceOp op, ArrayRef<TensorRef> x) {
  auto result = std::make_shared<Tensor>(op.getType());
  std::copy(x[0]->numbers.begin() + op.getOffset(), x[0]->numbers.end(), result->numbers.begin());
  return {result};
}

std::optional<Tensors> weft::check::runWhole(Operation *op, ArrayRef<TensorRef> operands) {
  return TypeSwitch<Operation *, std::optional<Tensors>>(op)
      .Case<AttentionOp, GroupedDotOp, WinogradConvOp, SortOp, CumulativeOp, ScatterOp, AdvanceOp>(
          [&](auto whole) { return run(whole, operands); })
      .Default([](Operation *) { return std::nullopt; });
}
