// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/StoredIndex.h"

using namespace mlir;
using namespace weft;

Index weft::physicalIndex(RankedTensorType type, ArrayRef<AffineExpr> index,
                          const IndexSpace &space) {
  LayoutAttr layout = layoutOf(type);
  if (!layout)
    return Index(index);
  Index physical;
  for (int64_t dim : layout.getOrder())
    physical.push_back(dim == layout.getTileDim()
                           ? space.simplify(index[dim].floorDiv(layout.getTileSize()))
                           : index[dim]);
  if (layout.hasTile())
    physical.push_back(space.simplify(index[layout.getTileDim()] % layout.getTileSize()));
  return physical;
}

std::pair<Value, Index> weft::storedAt(Value tensor, ArrayRef<AffineExpr> index,
                                       const IndexSpace &space) {
  Index physical = physicalIndex(cast<RankedTensorType>(tensor.getType()), index, space);
  if (auto cast = tensor.getDefiningOp<UnrealizedConversionCastOp>())
    tensor = cast.getInputs().front();
  return {tensor, physical};
}

std::optional<TileOperand> weft::storedOperand(ElementEmitter &point, Value tensor,
                                               ArrayRef<AffineExpr> logical) {
  auto [stored, index] = storedAt(tensor, logical, point.space);
  while (auto view = throughView(stored, index, point.space))
    std::tie(stored, index) = *view;
  if (stored.getDefiningOp())
    return std::nullopt;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(stored.getType()).getShape();
  return TileOperand{point.getBuffer(stored)->flat, point.space.linearize(index, shape)};
}

Value weft::storedResult(Value result) {
  if (result.hasOneUse())
    if (auto cast = dyn_cast<UnrealizedConversionCastOp>(*result.user_begin()))
      return cast.getResult(0);
  return result;
}
