// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vectors run along a block of tokens, a multiple of the vector width. The last block is padded;
// the padding of its last vector (or of half a long vector that is a tile of its own) is wasted
// work.
#include "compiler/Transforms/LinearLayouts.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

/// Time per row of a tile of `vectors` token vectors by `rows` weight rows, in units of one vector:
/// the maximum of FMAs and loads, where at least eight FMAs have to be in flight.
static double tileCost(int64_t vectors, int64_t rows) {
  constexpr double underWay = 8;
  double adds = double(vectors * rows), loads = double(vectors + rows);
  return std::max(adds, loads) * std::max(1.0, underWay / adds) / double(rows);
}

/// The block with the least work, for weights broadcast from their original layout or packed by
/// cache lines. Vectors that are all padding only cost time in attention and norms.
LinearLayouts::Block LinearLayouts::chooseBlock(int64_t tokens, bool byLines) const {
  struct Candidate {
    int64_t wide, rows; ///< in registers
    double costPerRegister;
  };
  // Narrow blocks reuse weights less: measured on 128 x 768 x 768, one vector per row of
  // accumulators costs about 15 %, two cost 1 to 2 %.
  constexpr Candidate ofRows[] = {{4, 6, 1.0}, {3, 9, 1.0}, {2, 14, 1.01}, {1, 14, 1.15}};
  // For weights packed by lines: six columns beside four token vectors, otherwise eight columns of
  // one line. Measured on the layers of GPT-2 in float32: four vectors cost 5 % less than three.
  constexpr Candidate ofLines[] = {{4, 6, 1.0}, {3, 8, 1.02}, {2, 8, 1.05}, {1, 8, 1.3}};
  // With 16 registers, for any layout of weights: a block of two tiles costs 3 to 8 % on BERT, T5,
  // GPT-2 and an MLP.
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
  // Measured on MiniLM with 16 to 48 tokens: within a network, dot products cost a fifth more than
  // full vectors, and pay off if the second of two vectors would be mostly padding.
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

/// Measured on 16 to 130 tokens and weights of 768 x 768 to 3072 x 768: a token of a dot product
/// costs 1.16 times as much as one in a full block.
static constexpr double costPerToken = 1.16;

double LinearLayouts::workInPlace(RankedTensorType type, int64_t readers) const {
  // Each step of a sum is another page: measured on GPT-2 with 1024 tokens.
  constexpr double costOfColumns = 1.03;
  if (!suitPackedWeights(type, readers))
    return 1;
  if (readsColumns(type))
    return costOfColumns;
  return tokenBlocks(type) ? workInTokenBlocks(type) : costPerToken;
}

double LinearLayouts::costOfMoving() const {
  constexpr double ofLane = 0.82;
  return ofLane * double(lanes);
}

LayoutAttr LinearLayouts::packed(RankedTensorType matrix, int64_t columnDim) const {
  int64_t block = chooseBlock(matrix.getDimSize(columnDim), /*byLines=*/false).size;
  return LayoutAttr::get(matrix.getContext(), {columnDim, 1 - columnDim}, columnDim, block);
}

bool LinearLayouts::suitPackedWeights(RankedTensorType type, int64_t readers) const {
  // Measured on networks of 1 to 26 rows: with fewer than ten, contractions are bound by loading
  // weights in either layout, if those are read once. In a repeated cell weights are cached.
  constexpr int64_t fewestTokens = 10, fewestOfRepeated = 2;
  int64_t rank = type.getRank();
  if (rank < 2)
    return false;
  int64_t tokens = type.getDimSize(rank - 2);
  return tokens >= fewestTokens || (tokens >= fewestOfRepeated && tokens * readers >= fewestTokens);
}

bool LinearLayouts::dotProductsCostLess(RankedTensorType type) const {
  constexpr double costOfRelayouts = 1.05;
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
