// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/InnermostDim.h"

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

std::optional<InnermostDim> weft::innermostOf(Value value) {
  if (auto view = value.getDefiningOp<ViewOpInterface>()) {
    std::optional<InnermostDim> at = innermostOf(view->getOperand(0));
    return at ? view.innermostDim(*at) : std::nullopt;
  }
  std::optional<int64_t> dim = innermostInMemory(cast<RankedTensorType>(value.getType()));
  return dim ? std::optional(InnermostDim{*dim}) : std::nullopt;
}
