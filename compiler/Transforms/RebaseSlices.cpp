// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/RebaseSlices.h"
#include "compiler/Graph/ViewLayouts.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;

/// Whether the result of `op` is a view of its operand's memory.
static bool keepsMemory(Operation *op) {
  if (!isa<ReshapeOp, TransposeOp>(op))
    return false;
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    LayoutAttr layout = layoutOf(from);
    if (!layout)
      layout = LayoutAttr::get(op->getContext(),
                               llvm::to_vector(llvm::seq<int64_t>(0, from.getRank())), -1, 0);
    return transposedLayout(layout, transpose.getPerm()) == layoutOf(to);
  }
  FailureOr<LayoutAttr> layout = reshapedLayout(from, to.getShape());
  return succeeded(layout) && *layout == layoutOf(to);
}

/// Collects the slices of `value`, through views; whether it has no other uses.
static bool collectSlices(Value value, SmallVectorImpl<SliceOp> &slices) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (auto slice = dyn_cast<SliceOp>(user)) {
      slices.push_back(slice);
      return true;
    }
    return keepsMemory(user) && collectSlices(user->getResult(0), slices);
  });
}

/// The common start of `slices` of one value; in a tiled dim a multiple of the tile.
static SmallVector<int64_t> commonStart(MutableArrayRef<SliceOp> slices) {
  SmallVector<int64_t> base(slices.front().getStart());
  for (SliceOp slice : slices.drop_front())
    for (auto [least, start] : llvm::zip_equal(base, slice.getStart()))
      least = std::min(least, start);
  if (LayoutAttr layout = layoutOf(slices.front().getOperand().getType()); isTiled(layout))
    base[layout.getTileDim()] -= base[layout.getTileDim()] % layout.getTileSize();
  return base;
}

static int64_t offsetInMemory(RankedTensorType type, ArrayRef<int64_t> base) {
  LayoutAttr layout = layoutOf(type);
  int64_t offset = 0;
  for (auto [dim, start, stride] : llvm::enumerate(base, stridesInMemory(type)))
    offset += (isTiled(layout) && layout.getTileDim() == static_cast<int64_t>(dim)
                   ? start / layout.getTileSize()
                   : start) *
              stride;
  return offset;
}

/// Moves `slices` by `base`, backward or, with `sign` 1, forward.
static void move(ArrayRef<SliceOp> slices, ArrayRef<int64_t> base, int64_t sign) {
  for (SliceOp slice : slices) {
    SmallVector<int64_t> start(slice.getStart()), limit(slice.getLimit());
    for (auto [dim, distance] : llvm::enumerate(base)) {
      start[dim] += sign * distance;
      limit[dim] += sign * distance;
    }
    slice.setStart(start);
    slice.setLimit(limit);
  }
}

void RebasedArgument::restore() { move(slices, base, 1); }

SmallVector<RebasedArgument> weft::rebaseSlices(func::FuncOp kernel) {
  SmallVector<RebasedArgument> rebased;
  for (BlockArgument argument : kernel.getArguments()) {
    SmallVector<SliceOp> slices;
    if (!collectSlices(argument, slices) || slices.empty())
      continue;
    auto sliced = slices.front().getOperand();
    if (llvm::any_of(slices, [&](SliceOp slice) { return slice.getOperand() != sliced; }))
      continue;
    SmallVector<int64_t> base = commonStart(slices);
    move(slices, base, -1);
    int64_t offset = offsetInMemory(sliced.getType(), base);
    rebased.push_back({argument.getArgNumber(), std::move(slices), std::move(base), offset});
  }
  return rebased;
}
