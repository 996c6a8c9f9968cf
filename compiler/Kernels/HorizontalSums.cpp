// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/HorizontalSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace {
/// Partial sums, as many side by side as its fold says, for one sum after the other.
struct Partials {
  Value lanes;
  SmallVector<int64_t> sums; ///< whose partial sums they are
};
} // namespace

/// The halves of each sum's `count` partial sums are added; what is left of two vectors fits
/// into one. Shuffles inside 128 bits are the cheap ones.
static Partials fold(OpBuilder &builder, Location loc, const Partials &first,
                     const Partials &second, int64_t count) {
  auto type = cast<VectorType>(first.lanes.getType());
  int64_t width = type.getNumElements(), segment = 128 / type.getElementTypeBitWidth();
  int64_t unit = count <= segment ? segment : width;
  SmallVector<int64_t> low, high, sums;
  for (int64_t start = 0; start < width; start += unit)
    for (bool isSecond : {false, true})
      for (int64_t lane = start; lane < start + unit; lane += count) {
        sums.push_back((isSecond ? second : first).sums[lane / count]);
        for (int64_t i = 0; i < count / 2; ++i) {
          low.push_back(isSecond * width + lane + i);
          high.push_back(low.back() + count / 2);
        }
      }
  Value lows = vector::ShuffleOp::create(builder, loc, first.lanes, second.lanes, low);
  Value highs = vector::ShuffleOp::create(builder, loc, first.lanes, second.lanes, high);
  return {arith::AddFOp::create(builder, loc, lows, highs), sums};
}

Value weft::horizontalSums(OpBuilder &builder, Location loc, ArrayRef<Value> vectors) {
  int64_t width = cast<VectorType>(vectors.front().getType()).getNumElements();
  SmallVector<Partials> all;
  for (auto [number, vector] : llvm::enumerate(vectors))
    all.push_back({vector, {int64_t(number)}});
  for (int64_t count = width; count > 1; count /= 2) {
    // One without a partner is folded with itself: its sums come twice.
    SmallVector<Partials> folded;
    for (size_t i = 0; i < all.size(); i += 2)
      folded.push_back(fold(builder, loc, all[i], all[std::min(i + 1, all.size() - 1)], count));
    all = std::move(folded);
  }
  assert(all.size() == 1 && "expected at most as many vectors as lanes");
  SmallVector<int64_t> order;
  for (int64_t number = 0; number < int64_t(vectors.size()); ++number)
    order.push_back(llvm::find(all.front().sums, number) - all.front().sums.begin());
  return vector::ShuffleOp::create(builder, loc, all.front().lanes, all.front().lanes, order);
}
