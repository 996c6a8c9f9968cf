// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/DotProduct/HorizontalReduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace {
/// A vector of partial sums: the same number of consecutive lanes for each of `sums`.
struct Partials {
  Value lanes;
  SmallVector<int64_t> sums; ///< index of the sum that each run of lanes belongs to
};
} // namespace

/// Halves the partial sums of each sum from `count` by adding; the results of two vectors fit into
/// one. Uses shuffles within 128 bits where possible, as they are cheaper.
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

/// Gathers the `wanted` sums from the vectors in `all`.
static Value collect(OpBuilder &builder, Location loc, ArrayRef<Partials> all,
                     ArrayRef<int64_t> wanted) {
  int64_t width = cast<VectorType>(all.front().lanes.getType()).getNumElements();
  auto take = [&](const Partials &partials, int64_t offset, MutableArrayRef<int64_t> order) {
    for (auto [place, sum] : llvm::enumerate(wanted)) {
      const auto *lane = llvm::find(partials.sums, sum);
      if (lane != partials.sums.end())
        order[place] = offset + (lane - partials.sums.begin());
    }
  };
  Value found = all.front().lanes;
  SmallVector<int64_t> order(wanted.size(), 0);
  take(all.front(), 0, order);
  for (const Partials &next : all.drop_front()) {
    take(next, width, order);
    bool isLast = &next == &all.back();
    // Shuffles take two vectors of the same type.
    SmallVector<int64_t> lanes(order);
    lanes.resize(isLast ? wanted.size() : width, 0);
    found = vector::ShuffleOp::create(builder, loc, found, next.lanes, lanes);
    std::iota(order.begin(), order.end(), 0);
  }
  return all.size() > 1 ? found : vector::ShuffleOp::create(builder, loc, found, found, order);
}

SmallVector<Value> weft::segmentSums(OpBuilder &builder, Location loc, ArrayRef<Value> vectors,
                                     int64_t segment) {
  int64_t segments = cast<VectorType>(vectors.front().getType()).getNumElements() / segment;
  int64_t numbers = 0;
  SmallVector<Partials> all;
  for (Value vector : vectors) {
    all.push_back({vector, {}});
    for (int64_t i = 0; i < segments; ++i)
      all.back().sums.push_back(numbers++);
  }
  for (int64_t count = segment; count > 1; count /= 2) {
    // An odd vector is folded with itself: its sums occur twice.
    SmallVector<Partials> folded;
    for (size_t i = 0; i < all.size(); i += 2)
      folded.push_back(fold(builder, loc, all[i], all[std::min(i + 1, all.size() - 1)], count));
    all = std::move(folded);
  }
  SmallVector<Value> found;
  for (int64_t i = 0; i < segments; ++i) {
    SmallVector<int64_t> wanted;
    for (int64_t number = i; number < numbers; number += segments)
      wanted.push_back(number);
    found.push_back(collect(builder, loc, all, wanted));
  }
  return found;
}

Value weft::horizontalSums(OpBuilder &builder, Location loc, ArrayRef<Value> vectors) {
  int64_t width = cast<VectorType>(vectors.front().getType()).getNumElements();
  return segmentSums(builder, loc, vectors, width).front();
}
