// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors run over a block of tokens, so it is a multiple of the lanes. The last is padded; what
// does not fill its last register, or half of a long one that has a tile to itself, is lost.
#include "compiler/Transforms/LinearLayouts.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

/// Time of a tile of `vectors` registers of tokens in a block with `rows` rows of a weight in
/// registers, for one row, in units of a register: as many multiply-adds as loads at a time, of
/// which at least eight are under way.
static double tileCost(int64_t vectors, int64_t rows) {
  constexpr double underWay = 8;
  double adds = double(vectors * rows), loads = double(vectors + rows);
  return std::max(adds, loads) * std::max(1.0, underWay / adds) / double(rows);
}

/// The block of least work, where weights are broadcast in place or copied line by line. Registers
/// that are all padding cost only what attention and norms do with them.
LinearLayouts::Block LinearLayouts::chooseBlock(int64_t tokens, bool byLines) const {
  struct Candidate {
    int64_t wide, rows; ///< in registers
    double costPerRegister;
  };
  // Narrow blocks reuse each weight less: measured on 128 x 768 x 768, one register per row of
  // accumulators costs about 15 %, two cost 1 to 2 %.
  constexpr Candidate ofRows[] = {{4, 6, 1.0}, {3, 9, 1.0}, {2, 14, 1.01}, {1, 14, 1.15}};
  // Of lines that have been copied, six columns are in registers beside four of tokens, else eight
  // of one line: measured on the layers of GPT-2 in float32, four registers cost 5 % less than
  // three.
  constexpr Candidate ofLines[] = {{4, 6, 1.0}, {3, 8, 1.02}, {2, 8, 1.05}, {1, 8, 1.3}};
  // With 16 registers, however weights lie: a block of two tiles, side by side, costs BERT, T5,
  // GPT-2 and an MLP 3 to 8 %.
  constexpr Candidate inFew[] = {{2, 6, 1.0}, {3, 4, 1.05}, {1, 12, 1.15}};
  constexpr double costOfPadding = 0.1;
  int64_t vectors = llvm::divideCeil(tokens, lanes);
  Block best{0, 0};
  ArrayRef<Candidate> candidates = byLines ? ArrayRef(ofLines) : ArrayRef(ofRows);
  if (registers < 32)
    candidates = inFew;
  for (auto [wide, rows, costPerRegister] : candidates) {
    int64_t whole = vectors / wide, rest = vectors % wide;
    double cost = double(whole * wide) * costPerRegister;
    if (rest > 0)
      cost += tileCost(rest, rows) + costOfPadding * double(wide - rest);
    cost *= double(lanes);
    if (best.size == 0 || cost < best.cost)
      best = {wide * lanes, cost};
  }
  return best;
}

LayoutAttr LinearLayouts::tokenBlocks(RankedTensorType type) const {
  int64_t rank = type.getRank();
  if (readsColumns(type) || rank < 2 || type.getDimSize(rank - 2) < lanes)
    return nullptr;
  int64_t tokens = type.getDimSize(rank - 2), block = chooseBlock(tokens, inByOut).size;
  // Measured on MiniLM with 16 to 48 tokens: dot products in all of a network cost a fifth more
  // than full registers, and gain where the second of two would be mostly padding.
  constexpr double costInNetworks = 1.2;
  if (!inByOut && type.getElementType().isF32() && tokens < 2 * lanes &&
      double(tokens) * costInNetworks < workInTokenBlocks(type) * double(tokens))
    return nullptr;
  return LayoutAttr::get(type.getContext(), llvm::to_vector(llvm::seq<int64_t>(rank)), rank - 2,
                         block);
}

double LinearLayouts::workInTokenBlocks(RankedTensorType type) const {
  if (readsColumns(type))
    return 1;
  int64_t tokens = type.getDimSize(type.getRank() - 2);
  return chooseBlock(tokens, inByOut).cost / double(tokens);
}

LayoutAttr LinearLayouts::packed(RankedTensorType matrix, int64_t columnDim) const {
  int64_t block = chooseBlock(matrix.getDimSize(columnDim), /*byLines=*/false).size;
  return LayoutAttr::get(matrix.getContext(), {columnDim, 1 - columnDim}, columnDim, block);
}

bool LinearLayouts::suitPackedWeights(RankedTensorType type, int64_t readers) const {
  // Measured on networks of 1 to 26 rows: fewer than ten wait for weights, however they lie, if
  // these are read once. A cell that is repeated has them in the cache.
  constexpr int64_t fewestTokens = 10, fewestOfRepeated = 2;
  int64_t rank = type.getRank();
  if (rank < 2)
    return false;
  int64_t tokens = type.getDimSize(rank - 2);
  return tokens >= fewestTokens || (tokens >= fewestOfRepeated && tokens * readers >= fewestTokens);
}

bool LinearLayouts::dotProductsCostLess(RankedTensorType type) const {
  // Measured on 16 to 130 tokens and weights of 768 x 768 to 3072 x 768: a token of a dot
  // product costs 1.16 times as much as one in a full block.
  constexpr double costPerToken = 1.16, costOfRelayouts = 1.05;
  constexpr int64_t mostBytes = 3 << 19; // activations stay in L2, or close to it
  int64_t tokens = type.getDimSize(type.getRank() - 2);
  int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  if (bytes > mostBytes || !type.getElementType().isF32())
    return false;
  return double(tokens) * costPerToken < chooseBlock(tokens, inByOut).cost * costOfRelayouts;
}

bool weft::isInTokenBlocks(RankedTensorType type) {
  LayoutAttr layout = layoutOf(type);
  return isTiled(layout) && layout.getTileDim() == type.getRank() - 2;
}
