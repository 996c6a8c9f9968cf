// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Best fit in a fixed order: each buffer goes into the smallest gap between the buffers
// placed before it that are alive at the same time. Several orders are tried, because none
// is best for every graph; largest first is good for most (Pisarchyk and Lee, "Efficient
// Memory Management for Deep Neural Net Inference", 2020, algorithm 3).
#include "compiler/Lowering/Entries/MemoryPlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace llvm;
using namespace weft;

static int64_t alignedBytes(const Lifetime &buffer) {
  return alignTo(buffer.bytes, arenaAlignment);
}

static bool overlapInTime(const Lifetime &a, const Lifetime &b) {
  return a.first <= b.last && b.first <= a.last;
}

/// The most bytes alive at one step.
static int64_t livenessBound(ArrayRef<Lifetime> buffers) {
  SmallVector<std::pair<int64_t, int64_t>> changes; // step, bytes; ends count after starts
  for (const Lifetime &buffer : buffers) {
    changes.push_back({2 * buffer.first, alignedBytes(buffer)});
    changes.push_back({2 * buffer.last + 1, -alignedBytes(buffer)});
  }
  sort(changes);
  int64_t alive = 0, most = 0;
  for (auto [step, bytes] : changes)
    most = std::max(most, alive += bytes);
  return most;
}

/// The start of the smallest gap of at least `bytes` between `placed` (offset, end).
static int64_t findGap(SmallVector<std::pair<int64_t, int64_t>> &placed, int64_t bytes) {
  sort(placed);
  int64_t end = 0, best = -1, bestSize = std::numeric_limits<int64_t>::max();
  for (auto [low, high] : placed) {
    if (low - end >= bytes && low - end < bestSize) {
      best = end;
      bestSize = low - end;
    }
    end = std::max(end, high);
  }
  return best >= 0 ? best : end;
}

static MemoryPlan placeInOrder(ArrayRef<Lifetime> buffers, ArrayRef<size_t> order) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  for (auto [position, index] : enumerate(order)) {
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (size_t other : order.take_front(position))
      if (overlapInTime(buffers[index], buffers[other]))
        taken.push_back({plan.offsets[other], plan.offsets[other] + alignedBytes(buffers[other])});
    int64_t bytes = alignedBytes(buffers[index]);
    plan.offsets[index] = findGap(taken, bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[index] + bytes);
  }
  return plan;
}

MemoryPlan weft::planMemory(ArrayRef<Lifetime> buffers) {
  auto length = [&](size_t i) { return buffers[i].last - buffers[i].first + 1; };
  auto bytes = [&](size_t i) { return alignedBytes(buffers[i]); };
  using Key = std::pair<int64_t, int64_t>;
  const std::function<Key(size_t)> keys[] = {
      [&](size_t i) { return Key(-bytes(i), -length(i)); },
      [&](size_t i) { return Key(-bytes(i) * length(i), -bytes(i)); },
      [&](size_t i) { return Key(-length(i), -bytes(i)); },
      [&](size_t i) { return Key(buffers[i].first, -bytes(i)); },
      [&](size_t i) { return Key(-buffers[i].last, -bytes(i)); },
  };

  int64_t bound = livenessBound(buffers);
  MemoryPlan best;
  best.bytes = std::numeric_limits<int64_t>::max();
  for (const auto &key : keys) {
    SmallVector<size_t> order = to_vector(seq<size_t>(0, buffers.size()));
    sort(order, [&](size_t a, size_t b) { return std::pair(key(a), a) < std::pair(key(b), b); });
    MemoryPlan plan = placeInOrder(buffers, order);
    if (plan.bytes < best.bytes)
      best = std::move(plan);
    if (best.bytes == bound)
      break;
  }
  best.bound = bound;
  return best;
}
