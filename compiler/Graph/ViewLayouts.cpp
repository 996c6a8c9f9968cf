// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Propagates layouts through transposes, reductions, broadcasts and reshapes.
#include "compiler/Graph/ViewLayouts.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;

LayoutAttr weft::normalized(LayoutAttr layout) {
  if (!layout || layout.hasTile() || !llvm::is_sorted(layout.getOrder()))
    return layout;
  return nullptr;
}

FailureOr<LayoutAttr> weft::unlessTiledAlong(RankedTensorType type,
                                             llvm::function_ref<bool(int64_t)> worksAlong) {
  LayoutAttr layout = layoutOf(type);
  if (isTiled(layout) && worksAlong(layout.getTileDim()))
    return failure();
  return layout;
}

FailureOr<LayoutAttr> weft::unlessTiled(RankedTensorType type) {
  return unlessTiledAlong(type, [](int64_t) { return true; });
}

LayoutAttr weft::transposedLayout(LayoutAttr layout, ArrayRef<int64_t> perm) {
  if (!layout)
    return nullptr;
  SmallVector<int64_t> resultDim(perm.size());
  for (auto [result, operand] : llvm::enumerate(perm))
    resultDim[operand] = result;
  auto order = llvm::map_to_vector(layout.getOrder(), [&](int64_t dim) { return resultDim[dim]; });
  int64_t tileDim = layout.hasTile() ? resultDim[layout.getTileDim()] : -1;
  return normalized(LayoutAttr::get(layout.getContext(), order, tileDim, layout.getTileSize()));
}

FailureOr<LayoutAttr> weft::reducedLayout(LayoutAttr layout, ArrayRef<int64_t> dims) {
  if (!layout)
    return LayoutAttr();
  if (layout.hasTile() && llvm::is_contained(dims, layout.getTileDim()))
    return failure();
  auto kept = [&](int64_t dim) {
    return dim - llvm::count_if(dims, [&](int64_t reduced) { return reduced < dim; });
  };
  SmallVector<int64_t> order;
  for (int64_t dim : layout.getOrder())
    if (!llvm::is_contained(dims, dim))
      order.push_back(kept(dim));
  int64_t tileDim = layout.hasTile() ? kept(layout.getTileDim()) : -1;
  return normalized(LayoutAttr::get(layout.getContext(), order, tileDim, layout.getTileSize()));
}

/// Inserts `dim` right after dim - 1, or outermost.
static void insertBehindPredecessor(SmallVectorImpl<int64_t> &order, int64_t dim) {
  auto *place = dim == 0 ? order.begin() : std::next(llvm::find(order, dim - 1));
  order.insert(place, dim);
}

FailureOr<LayoutAttr> weft::broadcastLayout(RankedTensorType operand, ArrayRef<int64_t> shape,
                                            ArrayRef<int64_t> dims) {
  LayoutAttr layout = layoutOf(operand);
  if (!layout)
    return LayoutAttr();
  int64_t tileDim = -1;
  if (layout.hasTile()) {
    tileDim = dims[layout.getTileDim()];
    if (operand.getDimSize(layout.getTileDim()) != shape[tileDim])
      return failure();
  }
  auto order = llvm::map_to_vector(layout.getOrder(), [&](int64_t dim) { return dims[dim]; });
  for (int64_t dim : llvm::seq<int64_t>(shape.size()))
    if (!llvm::is_contained(dims, dim))
      insertBehindPredecessor(order, dim);
  return normalized(LayoutAttr::get(layout.getContext(), order, tileDim, layout.getTileSize()));
}

namespace {

/// Operand dims and result dims of equal product; dims of size 1 belong to no group.
struct DimGroup {
  SmallVector<int64_t> from, to;
};

} // namespace

static SmallVector<int64_t> dimsAboveOne(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> dims;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size != 1)
      dims.push_back(dim);
  return dims;
}

/// The finest grouping of a reshape into merges and splits. Sizes are nonzero.
static SmallVector<DimGroup> groupDims(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<int64_t> fromDims = dimsAboveOne(from), toDims = dimsAboveOne(to);
  SmallVector<DimGroup> groups;
  for (size_t i = 0, j = 0; i < fromDims.size();) {
    DimGroup group;
    int64_t fromSize = from[fromDims[i]], toSize = to[toDims[j]];
    group.from.push_back(fromDims[i++]);
    group.to.push_back(toDims[j++]);
    while (fromSize != toSize) {
      if (fromSize < toSize) {
        fromSize *= from[fromDims[i]];
        group.from.push_back(fromDims[i++]);
      } else {
        toSize *= to[toDims[j]];
        group.to.push_back(toDims[j++]);
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

/// The result dim that inherits the tile of an operand dim, or failure.
static FailureOr<int64_t> moveTile(const DimGroup &group, LayoutAttr layout, ArrayRef<int64_t> from,
                                   ArrayRef<int64_t> to) {
  if (group.from.size() == 1 && group.to.size() == 1)
    return group.to.front();
  bool wholeTiles = from[layout.getTileDim()] % layout.getTileSize() == 0 &&
                    to[group.to.back()] % layout.getTileSize() == 0;
  if (layout.getTileDim() != group.from.back() || !wholeTiles)
    return failure();
  return group.to.back();
}

FailureOr<LayoutAttr> weft::reshapedLayout(RankedTensorType operand, ArrayRef<int64_t> shape) {
  LayoutAttr layout = layoutOf(operand);
  if (!layout)
    return LayoutAttr();
  if (operand.getNumElements() == 0)
    return failure();
  ArrayRef<int64_t> from = operand.getShape();
  SmallVector<int64_t> fromOrder;
  for (int64_t dim : layout.getOrder())
    if (from[dim] != 1)
      fromOrder.push_back(dim);
  if (layout.hasTile() && from[layout.getTileDim()] == 1)
    return failure();

  SmallVector<DimGroup> groups = groupDims(from, shape);
  SmallVector<int64_t> order;
  int64_t tileDim = -1;
  for (ArrayRef<int64_t> rest = fromOrder; !rest.empty();) {
    auto *group = llvm::find_if(groups, [&](const DimGroup &g) { return g.from[0] == rest[0]; });
    if (group == groups.end() || !rest.take_front(group->from.size()).equals(group->from))
      return failure();
    if (llvm::is_contained(group->from, layout.getTileDim())) {
      FailureOr<int64_t> moved = moveTile(*group, layout, from, shape);
      if (failed(moved))
        return failure();
      tileDim = *moved;
    }
    llvm::append_range(order, group->to);
    rest = rest.drop_front(group->from.size());
  }
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size == 1)
      insertBehindPredecessor(order, dim);
  return normalized(LayoutAttr::get(layout.getContext(), order, tileDim, layout.getTileSize()));
}
