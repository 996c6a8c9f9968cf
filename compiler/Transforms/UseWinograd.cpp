// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/ConvPadding.h"
#include "compiler/Transforms/Passes.h"
#include "compiler/Transforms/PreparedValues.h"
#include "mlir/IR/Builders.h"

namespace weft {
#define GEN_PASS_DEF_USEWINOGRAD
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// G of F(2, 3): transforms a window of 3.
static constexpr float windowTransform[4][3] = {
    {1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}};

static bool isAll(ArrayRef<int64_t> values, int64_t expected) {
  return llvm::all_of(values, [&](int64_t value) { return value == expected; });
}

/// Whether the multiplications saved outweigh the transforms and the larger weight.
static bool suits(ConvOp conv, int64_t lanes, int64_t l2Bytes) {
  // Tiles are blocks of 2x2 pixels. With fewer, the weight, loaded from memory once for each group
  // of tiles in L2, dominates.
  constexpr int64_t leastTiles = 32, leastInCache = 24, leastChannels = 32;
  RankedTensorType input = conv.getInput().getType(), weight = conv.getWeight().getType(),
                   result = conv.getType();
  if (input.getRank() != 4 || !input.getElementType().isF32() || !result.getElementType().isF32())
    return false;
  ArrayRef<int64_t> window = weight.getShape().drop_front(2), size = result.getShape();
  int64_t outputs = size[1], channels = weight.getDimSize(1);
  int64_t pixels = size[0] * size[2] * size[3];
  int64_t tiles = size[0] * llvm::divideCeil(size[2], 2) * llvm::divideCeil(size[3], 2);
  // Tiles of odd sizes overlap: for 7x7 pixels, 441 multiplications become 256, which does not make
  // up for the larger weight. For images one pixel high or wide nothing is saved.
  bool savesEnough = 4 * 9 * pixels >= 7 * 16 * tiles;
  int64_t bytesOfTile = 16 * sizeof(float) * (channels + 2 * lanes);
  return isAll(window, 3) && isAll(conv.getStrides(), 1) && isAll(conv.getDilations(), 1) &&
         conv.getGroups() == 1 && tiles >= leastTiles && savesEnough &&
         l2Bytes / 2 / bytesOfTile >= leastInCache && channels >= leastChannels &&
         channels % lanes == 0 && outputs % (2 * lanes) == 0;
}

/// (16, c, o) of a weight (o, c, 3, 3).
static Value transformedWeight(OpBuilder &builder, ConvOp conv) {
  Location loc = conv.getLoc();
  SmallVector<float> products;
  for (const auto &row : windowTransform)
    for (const auto &column : windowTransform)
      for (float a : row)
        for (float b : column)
          products.push_back(a * b);
  auto type = RankedTensorType::get({16, 9}, builder.getF32Type());
  Value transform = ConstantOp::create(builder, loc, type,
                                       DenseElementsAttr::get(type, ArrayRef<float>(products)));
  ArrayRef<int64_t> shape = conv.getWeight().getType().getShape();
  auto flat = RankedTensorType::get({shape[0], shape[1], 9}, builder.getF32Type());
  Value windows = ReshapeOp::create(builder, loc, flat, conv.getWeight());
  ArrayRef<int64_t> none;
  Value dot = DotGeneralOp::create(builder, loc, transform, windows, none, none,
                                   ArrayRef<int64_t>{1}, ArrayRef<int64_t>{2});
  return TransposeOp::create(builder, loc, dot, ArrayRef<int64_t>{0, 2, 1});
}

namespace {

struct UseWinograd : weft::impl::UseWinogradBase<UseWinograd> {
  using UseWinogradBase::UseWinogradBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    PreparedValues prepared(getOperation());
    for (ConvOp conv : llvm::to_vector(getOperation().getOps<ConvOp>())) {
      if (!prepared.contains(conv.getWeight()) || !suits(conv, lanes, l2Bytes))
        continue;
      OpBuilder builder(conv);
      movePaddingOut(builder, conv);
      Value transformed = transformedWeight(builder, conv);
      Value result = WinogradConvOp::create(builder, conv.getLoc(), conv.getInput(), transformed,
                                            conv.getWeight());
      conv.replaceAllUsesWith(result);
      conv.erase();
      ++numConvs;
    }
  }
};

} // namespace
