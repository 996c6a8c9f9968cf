// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Block sizes of tokens and of output channels. Vectors run over a block, so it is a
// multiple of the lanes; a tail is padded, and what does not fill its last register is lost.
#include "compiler/Transforms/LayoutChoices.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

static LayoutAttr identityOrder(MLIRContext *context, int64_t rank, int64_t tileDim,
                                int64_t tileSize) {
  return LayoutAttr::get(context, llvm::to_vector(llvm::seq<int64_t>(rank)), tileDim, tileSize);
}

namespace {
struct TokenBlock {
  int64_t size;
  double cost; ///< of all tokens, where one that leaves no padding behind costs 1
};
} // namespace

/// Time of a tile of `vectors` registers of tokens in a block with `rows` rows of a weight in
/// registers, for one row, in units of a register: as many multiply-adds as loads at a time, of
/// which at least eight are under way.
static double tileCost(int64_t vectors, int64_t rows) {
  constexpr double underWay = 8;
  double adds = double(vectors * rows), loads = double(vectors + rows);
  return std::max(adds, loads) * std::max(1.0, underWay / adds) / double(rows);
}

/// The block of least work. Registers that are all padding cost only what attention and norms do
/// with them. Narrow blocks reuse each weight less: measured on 128 x 768 x 768, one register per
/// row of accumulators costs about 15 %, two cost 1 to 2 %.
static TokenBlock chooseTokenBlock(int64_t tokens, int64_t lanes) {
  struct Candidate {
    int64_t registers, rows;
    double costPerRegister;
  };
  constexpr Candidate candidates[] = {{4, 6, 1.0}, {3, 9, 1.0}, {2, 14, 1.01}, {1, 14, 1.15}};
  constexpr double costOfPadding = 0.1;
  int64_t vectors = llvm::divideCeil(tokens, lanes);
  TokenBlock best{0, 0};
  for (auto [registers, rows, costPerRegister] : candidates) {
    int64_t whole = vectors / registers, rest = vectors % registers;
    double cost = double(whole * registers) * costPerRegister;
    if (rest > 0)
      cost += tileCost(rest, rows) + costOfPadding * double(registers - rest);
    cost *= double(lanes);
    if (best.size == 0 || cost < best.cost)
      best = {registers * lanes, cost};
  }
  return best;
}

LayoutAttr weft::chooseTokenLayout(RankedTensorType type, int64_t lanes) {
  int64_t rank = type.getRank();
  if (rank < 2 || type.getDimSize(rank - 2) < lanes)
    return nullptr;
  int64_t block = chooseTokenBlock(type.getDimSize(rank - 2), lanes).size;
  return identityOrder(type.getContext(), rank, rank - 2, block);
}

double weft::workInTokenBlocks(RankedTensorType type, int64_t lanes) {
  int64_t tokens = type.getDimSize(type.getRank() - 2);
  return chooseTokenBlock(tokens, lanes).cost / double(tokens);
}

LayoutAttr weft::choosePackedLayout(RankedTensorType matrix, int64_t columnDim, int64_t lanes) {
  int64_t block = chooseTokenBlock(matrix.getDimSize(columnDim), lanes).size;
  return LayoutAttr::get(matrix.getContext(), {columnDim, 1 - columnDim}, columnDim, block);
}

bool weft::dotProductsCostLess(RankedTensorType type, int64_t lanes) {
  // Measured on 16 to 130 tokens and weights of 768 x 768 to 3072 x 768: a token of a dot
  // product costs 1.16 times as much as one in a full block, and more where rows are not whole
  // vectors, so that loads cross cache lines.
  constexpr double costPerToken = 1.16, costOfOddRows = 1.35, costOfRelayouts = 1.05;
  constexpr int64_t mostBytes = 3 << 19; // activations stay in L2, or close to it
  int64_t rank = type.getRank(), tokens = type.getDimSize(rank - 2),
          depth = type.getDimSize(rank - 1);
  int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  if (bytes > mostBytes || !type.getElementType().isF32())
    return false;
  double ours = double(tokens) * costPerToken * (depth % lanes == 0 ? 1.0 : costOfOddRows);
  return ours < chooseTokenBlock(tokens, lanes).cost * costOfRelayouts;
}

bool weft::isInTokenBlocks(RankedTensorType type) {
  LayoutAttr layout = layoutOf(type);
  return layout && layout.hasTile() && layout.getTileDim() == type.getRank() - 2;
}

LayoutAttr weft::channelsLast(RankedTensorType type) {
  SmallVector<int64_t> order{0};
  llvm::append_range(order, llvm::seq<int64_t>(2, type.getRank()));
  order.push_back(1);
  return LayoutAttr::get(type.getContext(), order, -1, 0);
}

/// Whether vectors of a grouped convolution run along its channels: where they stay in a
/// group, or each lane is a group. Narrower groups share vectors, at half the speed that
/// vectors along a row of the image have where there are such.
static bool vectorsRunAlongChannels(ConvOp conv, int64_t lanes) {
  int64_t inputs = conv.getWeight().getType().getDimSize(1);
  int64_t channels = conv.getWeight().getType().getDimSize(0) / int64_t(conv.getGroups());
  if (channels % lanes == 0 || (channels == 1 && inputs == 1))
    return true;
  bool rows = conv.getStrides().back() == 1 && conv.getType().getShape().back() >= lanes / 2;
  return !rows && lanes % channels == 0 && inputs <= channels;
}

std::optional<ConvLayouts> weft::chooseConvLayouts(ConvOp conv, int64_t lanes) {
  RankedTensorType input = conv.getInput().getType(), weight = conv.getWeight().getType();
  int64_t channels = weight.getDimSize(0), rank = weight.getRank();
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(2, rank));
  order.push_back(1);
  if (conv.getGroups() > 1) {
    if (!vectorsRunAlongChannels(conv, lanes))
      return std::nullopt;
    order.push_back(0);
    return ConvLayouts{channelsLast(input), LayoutAttr::get(weight.getContext(), order, -1, 0)};
  }
  bool fewChannels = 2 * channels <= lanes;
  if (fewChannels && conv.getStrides().back() == 1 && conv.getType().getShape().back() >= lanes)
    return std::nullopt;
  order.insert(order.begin(), 0);
  bool oneRegisterPadsLess = llvm::alignTo(channels, lanes) < llvm::alignTo(channels, 2 * lanes);
  return ConvLayouts{channelsLast(input), LayoutAttr::get(weight.getContext(), order, 0,
                                                          oneRegisterPadsLess ? lanes : 2 * lanes)};
}

WinogradLayouts weft::chooseWinogradLayouts(WinogradConvOp conv, int64_t lanes) {
  MLIRContext *context = conv.getContext();
  return {channelsLast(conv.getInput().getType()),
          LayoutAttr::get(context, {2, 0, 1}, 2, 2 * lanes),
          LayoutAttr::get(context, {0, 2, 3, 1}, 0, 2 * lanes)};
}
