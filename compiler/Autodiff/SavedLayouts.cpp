// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Autodiff/SavedLayouts.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/ImageLayout.h"
#include "compiler/Graph/OpStructure.h"

using namespace mlir;
using namespace weft;

/// Whether vectors run along the channels of the convolution's result on any machine (compare
/// Transforms/ConvLayouts).
static bool runsAlongChannels(ConvOp conv) {
  constexpr int64_t mostLanes = 16;
  int64_t groups = conv.getGroups(), inputs = conv.getWeight().getType().getDimSize(1);
  int64_t channels = conv.getWeight().getType().getDimSize(0) / groups;
  if (groups == 1)
    return channels >= mostLanes;
  return channels % mostLanes == 0 || (channels == 1 && inputs == 1);
}

static bool keepsImages(Operation *op) {
  if (op->hasTrait<OpTrait::Elementwise>() || isa<SharedLayoutOpInterface>(op))
    return true;
  auto keeping = dyn_cast<LayoutOpInterface>(op);
  return keeping && keeping.keepsImages();
}

SavedLayouts::SavedLayouts(Block &block) {
  for (Operation &op : block.without_terminator()) {
    auto conv = dyn_cast<ConvOp>(op);
    bool isImage = conv ? runsAlongChannels(conv)
                        : keepsImages(&op) && llvm::any_of(op.getOperands(), [&](Value operand) {
                            return images.contains(operand);
                          });
    if (isImage)
      images.insert(op.result_begin(), op.result_end());
  }
}

LayoutAttr SavedLayouts::of(Value value) const {
  RankedTensorType type = tensorType(value);
  return images.contains(value) && type.getRank() > 2 ? channelsLast(type) : LayoutAttr();
}
