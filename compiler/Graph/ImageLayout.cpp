// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/ImageLayout.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace weft;

LayoutAttr weft::channelsLast(RankedTensorType type) {
  SmallVector<int64_t> order{0};
  llvm::append_range(order, llvm::seq<int64_t>(2, type.getRank()));
  order.push_back(1);
  return LayoutAttr::get(type.getContext(), order, -1, 0);
}
