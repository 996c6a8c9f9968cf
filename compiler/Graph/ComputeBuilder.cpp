// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writing primitive ops for the decomposition of composites.
#include "compiler/Graph/ComputeBuilder.h"
#include "compiler/Graph/Constraints.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace weft;

ComputeBuilder::ComputeBuilder(OpBuilder &builder, Location location, Type element)
    : builder(builder), location(location),
      compute(element.isF64() ? element : Type(builder.getF32Type())) {}

Value ComputeBuilder::convert(Value value, Type element) {
  RankedTensorType type = tensorType(value);
  if (type.getElementType() == element)
    return value;
  return create<ConvertOp>(type.clone(element), value);
}

Value ComputeBuilder::enter(Value value) { return convert(value, compute); }

Value ComputeBuilder::leave(Value value, Type element) { return convert(value, element); }

Value ComputeBuilder::splat(Value like, double value) {
  RankedTensorType type = tensorType(like);
  Type element = type.getElementType();
  Attribute each = isa<FloatType>(element)
                       ? Attribute(builder.getFloatAttr(element, value))
                       : builder.getIntegerAttr(element, static_cast<int64_t>(value));
  return create<ConstantOp>(DenseElementsAttr::get(type, each));
}

/// `layout` without `dims`. The tile of a dim that disappears goes with it.
static LayoutAttr withoutDims(LayoutAttr layout, ArrayRef<int64_t> dims) {
  auto kept = [&](int64_t dim) {
    return dim - llvm::count_if(dims, [&](int64_t gone) { return gone < dim; });
  };
  SmallVector<int64_t> order;
  for (int64_t dim : layout.getOrder())
    if (!llvm::is_contained(dims, dim))
      order.push_back(kept(dim));
  bool tiled = layout.hasTile() && !llvm::is_contained(dims, layout.getTileDim());
  if (!tiled && llvm::is_sorted(order))
    return {};
  return LayoutAttr::get(layout.getContext(), order, tiled ? kept(layout.getTileDim()) : -1,
                         tiled ? layout.getTileSize() : 0);
}

Value ComputeBuilder::reduce(ReduceKind kind, Value value, ArrayRef<int64_t> dims) {
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> shape;
  for (int64_t dim : llvm::seq(type.getRank()))
    if (!llvm::is_contained(dims, dim))
      shape.push_back(type.getDimSize(dim));
  LayoutAttr layout = layoutOf(type);
  auto result = RankedTensorType::get(shape, type.getElementType(),
                                      layout ? withoutDims(layout, dims) : layout);
  return create<ReduceOp>(result, kind, value, dims);
}

Value ComputeBuilder::mean(Value value, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= tensorType(value).getDimSize(dim);
  Value sum = reduce(ReduceKind::sum, value, dims);
  return create<DivOp>(sum, splat(sum, count));
}

Value ComputeBuilder::exactMean(Value value, ArrayRef<int64_t> dims) {
  Type element = tensorType(value).getElementType(), wide = builder.getF64Type();
  Value first = mean(convert(value, wide), dims);
  if (element != wide)
    return convert(first, element);
  // In f64 there is no wider type to sum in: add the mean of what the first mean leaves.
  Value rest = create<SubOp>(value, unreduce(first, value, dims));
  return create<AddOp>(first, mean(rest, dims));
}

Value ComputeBuilder::broadcast(Value value, Value like, ArrayRef<int64_t> places) {
  return create<BroadcastInDimOp>(tensorType(like).clone(tensorType(value).getElementType()), value,
                                  places);
}

Value ComputeBuilder::unreduce(Value reduced, Value like, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> places;
  for (int64_t dim : llvm::seq(tensorType(like).getRank()))
    if (!llvm::is_contained(dims, dim))
      places.push_back(dim);
  return broadcast(reduced, like, places);
}

Value ComputeBuilder::reshape(Value value, ArrayRef<int64_t> shape, LayoutAttr layout) {
  auto type = RankedTensorType::get(shape, tensorType(value).getElementType(), layout);
  return tensorType(value) == type ? value : create<ReshapeOp>(type, value);
}

Value ComputeBuilder::inverseDeviation(Value variance, double eps) {
  Value shifted = create<AddOp>(variance, splat(variance, eps));
  Value deviation = create<SqrtOp>(shifted);
  return create<DivOp>(splat(deviation, 1.0), deviation);
}
