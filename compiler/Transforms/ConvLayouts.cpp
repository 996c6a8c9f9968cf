// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors run along a block of output channels, a multiple of the vector width; the last block is
// padded, and the padding of its last vector is wasted work.
#include "compiler/Transforms/ConvLayouts.h"
#include "compiler/Graph/ImageLayout.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

/// Whether vectors of a grouped convolution run along channels: if they do not cross groups, or
/// each lane is a group. Vectors across narrow groups have half the speed of vectors along an image
/// row, if rows allow those.
static bool vectorsRunAlongChannels(ConvOp conv, int64_t lanes) {
  int64_t inputs = conv.getWeight().getType().getDimSize(1);
  int64_t channels = conv.getWeight().getType().getDimSize(0) / int64_t(conv.getGroups());
  if (channels % lanes == 0 || (channels == 1 && inputs == 1))
    return true;
  bool rows = conv.getStrides().back() == 1 && conv.getType().getShape().back() >= lanes / 2;
  return !rows && lanes % channels == 0 && inputs <= channels;
}

/// Vectors of a block of output channels: two (the last block may have one), or three if that
/// leaves no remainder.
static int64_t registersOfBlock(int64_t channels, int64_t lanes) {
  int64_t vectors = llvm::divideCeil(channels, lanes);
  if (vectors == 1)
    return 1;
  return vectors % 2 != 0 && vectors % 3 == 0 ? 3 : 2;
}

std::optional<ConvLayouts> weft::chooseConvLayouts(ConvOp conv, int64_t lanes) {
  RankedTensorType input = conv.getInput().getType(), weight = conv.getWeight().getType();
  int64_t groups = conv.getGroups(), channels = weight.getDimSize(0) / groups;
  bool alongRows = 2 * channels <= lanes && conv.getStrides().back() == 1 &&
                   conv.getType().getShape().back() >= lanes;
  if (groups > 1 ? !vectorsRunAlongChannels(conv, lanes) : alongRows)
    return std::nullopt;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(2, weight.getRank()));
  order.push_back(1);
  // The last block may be padded, but no block has channels of two groups.
  int64_t block = lanes * registersOfBlock(channels, lanes);
  bool packs = groups == 1 || channels % block == 0;
  order.insert(packs ? order.begin() : order.end(), 0);
  auto packed = LayoutAttr::get(weight.getContext(), order, packs ? 0 : -1, packs ? block : 0);
  return ConvLayouts{channelsLast(input), packed};
}

WinogradLayouts weft::chooseWinogradLayouts(WinogradConvOp conv, int64_t lanes) {
  MLIRContext *context = conv.getContext();
  return {channelsLast(conv.getInput().getType()),
          LayoutAttr::get(context, {2, 0, 1}, 2, 2 * lanes),
          LayoutAttr::get(context, {0, 2, 3, 1}, 0, 2 * lanes)};
}
