// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layout arithmetic and the data movement between layouts.
#include "compiler/Lowering/StoredTensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;
using llvm::SmallVector;

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

Layout Layout::rowMajor(int64_t rank) { return {llvm::to_vector(llvm::seq<int64_t>(rank)), -1, 0}; }

Layout Layout::of(RankedTensorType type) {
  LayoutAttr attr = layoutOf(type);
  if (!attr)
    return rowMajor(type.getRank());
  return {SmallVector<int64_t>(attr.getOrder()), attr.getTileDim(), attr.getTileSize()};
}

Layout Layout::permuted(ArrayRef<int64_t> perm) const {
  SmallVector<int64_t> inverse(perm.size());
  for (auto [to, from] : llvm::enumerate(perm))
    inverse[from] = to;
  Layout result{{}, hasTile() ? inverse[tileDim] : -1, tileSize};
  for (int64_t dim : order)
    result.order.push_back(inverse[dim]);
  return result;
}

SmallVector<PhysicalDim> Layout::dims() const {
  SmallVector<PhysicalDim> result;
  for (int64_t dim : order)
    result.push_back({dim, dim == tileDim ? PhysicalDim::Block : PhysicalDim::Whole});
  if (hasTile())
    result.push_back({tileDim, PhysicalDim::Lane});
  return result;
}

int64_t Layout::position(PhysicalDim dim) const {
  SmallVector<PhysicalDim> all = dims();
  const PhysicalDim *found = llvm::find(all, dim);
  assert(found != all.end() && "dim is not part of the layout");
  return found - all.begin();
}

SmallVector<int64_t> Layout::physicalShape(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> result;
  for (PhysicalDim dim : dims()) {
    if (dim.part == PhysicalDim::Whole)
      result.push_back(shape[dim.dim]);
    else if (dim.part == PhysicalDim::Block)
      result.push_back(llvm::divideCeil(shape[dim.dim], tileSize));
    else
      result.push_back(tileSize);
  }
  return result;
}

RankedTensorType weft::storageType(RankedTensorType logical) {
  Type element = logical.getElementType();
  if (element.isInteger(1) || element.isUnsignedInteger(8))
    element = IntegerType::get(logical.getContext(), 8);
  return physicalType(logical).clone(element);
}

//===----------------------------------------------------------------------===//
// Movement of physical values
//===----------------------------------------------------------------------===//

TypedAttr weft::splatOf(Value value) {
  DenseElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)) || !attr.isSplat())
    return {};
  return cast<TypedAttr>(attr.getSplatValue<Attribute>());
}

/// `value` with another shape if it is a splat constant, else null.
static Value movedSplat(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  TypedAttr splat = splatOf(value);
  if (!splat)
    return {};
  auto type = RankedTensorType::get(shape, splat.getType());
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, splat));
}

static bool keepsElementOrder(ArrayRef<int64_t> shape, ArrayRef<int64_t> perm) {
  SmallVector<int64_t> moving =
      llvm::filter_to_vector(perm, [&](int64_t dim) { return shape[dim] != 1; });
  return llvm::is_sorted(moving);
}

Value weft::transposed(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> perm) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : perm)
    shape.push_back(type.getDimSize(dim));
  if (keepsElementOrder(type.getShape(), perm))
    return reshaped(builder, loc, value, shape);
  if (Value splat = movedSplat(builder, loc, value, shape))
    return splat;
  Value init = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  AffineMap toResult = AffineMap::getPermutationMap(perm, builder.getContext());
  SmallVector<AffineMap> maps{inversePermutation(toResult),
                              builder.getMultiDimIdentityMap(type.getRank())};
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, init.getType(), value, init, maps, iterators,
                                   [](OpBuilder &body, Location loc, ValueRange args) {
                                     linalg::YieldOp::create(body, loc, args.front());
                                   })
      .getResult(0);
}

namespace {
/// Adjacent dims that a reshape maps to adjacent dims with the same product.
struct ReshapeGroup {
  SmallVector<int64_t> from, to;
};
} // namespace

static SmallVector<int64_t> largeDims(ArrayRef<int64_t> shape) {
  return llvm::filter_to_vector(llvm::seq<int64_t>(shape.size()),
                                [&](int64_t dim) { return shape[dim] != 1; });
}

static SmallVector<ReshapeGroup> reshapeGroups(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<int64_t> fromDims = largeDims(from), toDims = largeDims(to);
  SmallVector<ReshapeGroup> groups;
  size_t i = 0, j = 0;
  while (i < fromDims.size()) {
    ReshapeGroup &group = groups.emplace_back();
    group.from = {fromDims[i]};
    group.to = {toDims[j]};
    int64_t fromSize = from[fromDims[i++]], toSize = to[toDims[j++]];
    while (fromSize != toSize) {
      if (fromSize < toSize) {
        group.from.push_back(fromDims[i]);
        fromSize *= from[fromDims[i++]];
      } else {
        group.to.push_back(toDims[j]);
        toSize *= to[toDims[j++]];
      }
    }
  }
  return groups;
}

/// The finest shape that both are expansions of.
static SmallVector<int64_t> commonShape(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  int64_t elements = ShapedType::getNumElements(from);
  if (elements <= 1)
    return {elements};
  SmallVector<int64_t> shape;
  for (const ReshapeGroup &group : reshapeGroups(from, to)) {
    int64_t size = 1;
    for (int64_t dim : group.from)
      size *= from[dim];
    shape.push_back(size);
  }
  return shape;
}

/// `value` collapsed or expanded to `shape`; null if that takes both.
static Value regrouped(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  RankedTensorType result = type.clone(shape);
  int64_t from = type.getRank(), to = shape.size();
  if (type == result)
    return value;
  if (from == to)
    return {};
  std::optional<SmallVector<ReassociationIndices>> groups;
  // A scalar has no groups; a single dim is one group, even if it is empty.
  if (from == 0 || to == 0)
    groups.emplace();
  else if (from == 1 || to == 1)
    groups = {llvm::to_vector(llvm::seq<int64_t>(std::max(from, to)))};
  else
    groups = getReassociationIndicesForReshape(type, result);
  if (!groups)
    return {};
  if (to < from)
    return tensor::CollapseShapeOp::create(builder, loc, result, value, *groups);
  return tensor::ExpandShapeOp::create(builder, loc, result, value, *groups);
}

Value weft::reshaped(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  if (Value splat = movedSplat(builder, loc, value, shape))
    return splat;
  if (Value direct = regrouped(builder, loc, value, shape))
    return direct;
  Value common = regrouped(builder, loc, value, commonShape(type.getShape(), shape));
  Value found = regrouped(builder, loc, common, shape);
  assert(found && "what both shapes have in common holds dims of either");
  return found;
}

//===----------------------------------------------------------------------===//
// Relayout
//===----------------------------------------------------------------------===//

/// For each of `to`, its position in `from`.
static SmallVector<int64_t> permutationBetween(ArrayRef<PhysicalDim> from,
                                               ArrayRef<PhysicalDim> to) {
  SmallVector<int64_t> perm;
  for (const PhysicalDim &dim : to)
    perm.push_back(llvm::find(from, dim) - from.begin());
  return perm;
}

/// The dims of a layout without its tile, with the tiled dim as adjacent blocks and lanes.
static SmallVector<PhysicalDim> splitDims(ArrayRef<int64_t> order, int64_t tileDim) {
  SmallVector<PhysicalDim> dims;
  for (int64_t dim : order) {
    if (dim != tileDim) {
      dims.push_back({dim, PhysicalDim::Whole});
      continue;
    }
    dims.push_back({dim, PhysicalDim::Block});
    dims.push_back({dim, PhysicalDim::Lane});
  }
  return dims;
}

Value weft::resized(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t found = type.getDimSize(dim);
  if (found == size)
    return value;
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  SmallVector<OpFoldResult> zeros(type.getRank(), builder.getIndexAttr(0));
  if (size < found) {
    SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(builder.getContext(), shape);
    SmallVector<OpFoldResult> ones(type.getRank(), builder.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(builder, loc, type.clone(shape), value, zeros, sizes,
                                          ones);
  }
  SmallVector<OpFoldResult> high = zeros;
  high[dim] = builder.getIndexAttr(size - found);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(builder, loc, type.clone(shape), value, zeros, high, zero);
}

static Value withoutTile(OpBuilder &builder, Location loc, const StoredTensor &tensor,
                         ArrayRef<int64_t> order) {
  int64_t tileDim = tensor.layout.tileDim;
  SmallVector<PhysicalDim> split = splitDims(order, tileDim);
  Value value =
      transposed(builder, loc, tensor.value, permutationBetween(tensor.layout.dims(), split));
  int64_t block = llvm::find(order, tileDim) - order.begin();
  SmallVector<int64_t> padded(cast<RankedTensorType>(value.getType()).getShape());
  padded[block] *= padded[block + 1];
  padded.erase(padded.begin() + block + 1);
  value = reshaped(builder, loc, value, padded);
  return resized(builder, loc, value, block, tensor.shape[tileDim]);
}

static Value tiled(OpBuilder &builder, Location loc, const StoredTensor &tensor,
                   const Layout &layout) {
  ArrayRef<int64_t> order = tensor.layout.order;
  int64_t position = llvm::find(order, layout.tileDim) - order.begin();
  int64_t blocks = llvm::divideCeil(tensor.shape[layout.tileDim], layout.tileSize);
  Value value = resized(builder, loc, tensor.value, position, blocks * layout.tileSize);
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  shape[position] = blocks;
  shape.insert(shape.begin() + position + 1, layout.tileSize);
  value = reshaped(builder, loc, value, shape);
  return transposed(builder, loc, value,
                    permutationBetween(splitDims(order, layout.tileDim), layout.dims()));
}

Value weft::relayout(OpBuilder &builder, Location loc, const StoredTensor &tensor,
                     const Layout &layout) {
  const Layout &from = tensor.layout;
  if (from == layout)
    return tensor.value;
  if (Value splat = movedSplat(builder, loc, tensor.value, layout.physicalShape(tensor.shape)))
    return splat;
  if (from.tileDim == layout.tileDim && from.tileSize == layout.tileSize)
    return transposed(builder, loc, tensor.value, permutationBetween(from.dims(), layout.dims()));
  if (!from.hasTile())
    return tiled(builder, loc, tensor, layout);
  Value plain = withoutTile(builder, loc, tensor, layout.order);
  if (!layout.hasTile())
    return plain;
  return tiled(builder, loc, {plain, tensor.shape, layout.withoutTile()}, layout);
}

StoredTensor weft::untiled(OpBuilder &builder, Location loc, const StoredTensor &tensor) {
  Layout layout = tensor.layout.withoutTile();
  return {relayout(builder, loc, tensor, layout), tensor.shape, layout};
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

/// Whether blocks of the group's innermost dim are blocks of its new innermost dim.
static bool keepsTile(const StoredTensor &tensor, ArrayRef<int64_t> shape,
                      const ReshapeGroup &group) {
  const Layout &layout = tensor.layout;
  if (!llvm::is_contained(group.from, layout.tileDim))
    return true;
  if (group.from.size() == 1 && group.to.size() == 1)
    return true;
  return group.from.back() == layout.tileDim &&
         tensor.shape[layout.tileDim] % layout.tileSize == 0 &&
         shape[group.to.back()] % layout.tileSize == 0;
}

/// The layout in which the memory of `tensor` is its row-major reshape to `shape`, if there is one.
static std::optional<Layout> layoutAfterReshape(const StoredTensor &tensor,
                                                ArrayRef<int64_t> shape) {
  const Layout &layout = tensor.layout;
  bool plain = !layout.hasTile() && llvm::is_sorted(layout.order);
  if (plain)
    return Layout::rowMajor(shape.size());
  if (llvm::is_contained(shape, 0) || (layout.hasTile() && tensor.shape[layout.tileDim] == 1))
    return std::nullopt;

  SmallVector<ReshapeGroup> groups = reshapeGroups(tensor.shape, shape);
  SmallVector<int64_t> large =
      llvm::filter_to_vector(layout.order, [&](int64_t dim) { return tensor.shape[dim] != 1; });
  Layout result{{}, -1, layout.tileSize};
  for (ArrayRef<int64_t> rest = large; !rest.empty();) {
    const ReshapeGroup *group = llvm::find_if(
        groups, [&](const ReshapeGroup &group) { return group.from.front() == rest.front(); });
    if (group == groups.end() || !keepsTile(tensor, shape, *group) ||
        rest.take_front(group->from.size()) != ArrayRef(group->from))
      return std::nullopt;
    rest = rest.drop_front(group->from.size());
    llvm::append_range(result.order, group->to);
    if (llvm::is_contained(group->from, layout.tileDim))
      result.tileDim = group->to.back();
  }
  // Size-1 dims may be anywhere; after their logical predecessor they keep a row-major order.
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size != 1)
      continue;
    auto behind =
        dim == 0 ? result.order.begin() : std::next(llvm::find(result.order, int64_t(dim) - 1));
    result.order.insert(behind, dim);
  }
  return result;
}

StoredTensor weft::reshapedLogically(OpBuilder &builder, Location loc, const StoredTensor &tensor,
                                     ArrayRef<int64_t> shape) {
  if (std::optional<Layout> layout = layoutAfterReshape(tensor, shape))
    return {reshaped(builder, loc, tensor.value, layout->physicalShape(shape)), shape, *layout};
  Layout plain = Layout::rowMajor(tensor.shape.size());
  Value value = relayout(builder, loc, tensor, plain);
  return {reshaped(builder, loc, value, shape), shape, Layout::rowMajor(shape.size())};
}
