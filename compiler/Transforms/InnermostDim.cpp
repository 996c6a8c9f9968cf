// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/InnermostDim.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;

std::optional<int64_t> weft::innermostInMemory(RankedTensorType type) {
  LayoutAttr layout = layoutOf(type);
  if (isTiled(layout))
    return layout.getTileDim();
  for (int64_t place = type.getRank() - 1; place >= 0; --place) {
    int64_t dim = layout ? layout.getOrder()[place] : place;
    if (type.getDimSize(dim) > 1)
      return dim;
  }
  return std::nullopt;
}

/// Maps the dim through a reshape: to the dim whose row-major stride divides the element step.
static std::optional<InnermostDim> throughReshape(InnermostDim at, ArrayRef<int64_t> from,
                                                  ArrayRef<int64_t> to) {
  if (llvm::is_contained(from, 0)) // no elements, no steps between them
    return std::nullopt;
  int64_t distance = at.step;
  for (int64_t size : from.drop_front(at.dim + 1))
    distance *= size;
  int64_t stride = 1;
  for (int64_t dim = to.size() - 1; dim >= 0; --dim) {
    if (distance % stride == 0 && distance < stride * to[dim])
      return InnermostDim{dim, distance / stride};
    stride *= to[dim];
  }
  return std::nullopt;
}

std::optional<InnermostDim> weft::innermostOf(Value value) {
  auto stored = [&]() -> std::optional<InnermostDim> {
    std::optional<int64_t> dim = innermostInMemory(cast<RankedTensorType>(value.getType()));
    return dim ? std::optional(InnermostDim{*dim}) : std::nullopt;
  };
  Operation *op = value.getDefiningOp();
  if (!op)
    return stored();
  auto behind = [&]() { return innermostOf(op->getOperand(0)); };
  return TypeSwitch<Operation *, std::optional<InnermostDim>>(op)
      .Case([&](TransposeOp transpose) -> std::optional<InnermostDim> {
        std::optional<InnermostDim> at = behind();
        if (at)
          at->dim = llvm::find(transpose.getPerm(), at->dim) - transpose.getPerm().begin();
        return at;
      })
      .Case([&](ReshapeOp reshape) -> std::optional<InnermostDim> {
        std::optional<InnermostDim> at = behind();
        if (!at)
          return at;
        return throughReshape(*at, reshape.getOperand().getType().getShape(),
                              reshape.getType().getShape());
      })
      .Case([&](SliceOp slice) -> std::optional<InnermostDim> {
        std::optional<InnermostDim> at = behind();
        return at && slice.getStride()[at->dim] == 1 ? at : std::nullopt;
      })
      .Case([&](RelayoutOp) { return behind(); })
      .Default([&](Operation *) { return stored(); });
}
