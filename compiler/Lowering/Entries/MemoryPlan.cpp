// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Best fit in a fixed order: each buffer goes into the smallest gap between the buffers placed
// before it with overlapping lifetimes. Largest first is a good order for most graphs (Pisarchyk
// and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, algorithm 3), none is
// best for all, so several are tried. If an order wastes memory, the buffer with the highest end is
// placed first in the next one.
#include "compiler/Lowering/Entries/MemoryPlan.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace llvm;
using namespace weft;

static bool overlapInTime(const Lifetime &a, const Lifetime &b) {
  return a.first <= b.last && b.first <= a.last;
}

int64_t weft::livenessBound(ArrayRef<Lifetime> buffers) {
  SmallVector<std::pair<int64_t, int64_t>> changes; // step, bytes; ends count after starts
  for (const Lifetime &buffer : buffers) {
    changes.push_back({2 * buffer.first, buffer.alignedBytes()});
    changes.push_back({2 * buffer.last + 1, -buffer.alignedBytes()});
  }
  sort(changes);
  int64_t alive = 0, most = 0;
  for (auto [step, bytes] : changes)
    most = std::max(most, alive += bytes);
  return most;
}

/// The start of the smallest gap of at least `bytes` between the ranges `placed` (offset, end).
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

namespace {

/// Tries several placement orders for one set of buffers.
class Planner {
public:
  explicit Planner(ArrayRef<Lifetime> buffers);

  /// Places the buffers in `order` and in orders made from it, and keeps the best plan.
  void improve(SmallVector<size_t> order);
  /// No order can do better.
  bool isOptimal() const { return best.bytes == bound; }
  MemoryPlan takeBest() { return std::move(best); }

private:
  MemoryPlan place(ArrayRef<size_t> order) const;
  size_t highest(const MemoryPlan &plan) const;

  ArrayRef<Lifetime> buffers;
  SmallVector<SmallVector<size_t>> neighbours; ///< with overlapping lifetimes
  int64_t bound;
  MemoryPlan best;
};

} // namespace

Planner::Planner(ArrayRef<Lifetime> buffers)
    : buffers(buffers), neighbours(buffers.size()), bound(livenessBound(buffers)) {
  best.bytes = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (overlapInTime(buffers[i], buffers[j])) {
        neighbours[i].push_back(j);
        neighbours[j].push_back(i);
      }
}

MemoryPlan Planner::place(ArrayRef<size_t> order) const {
  constexpr int64_t nowhere = -1;
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), nowhere);
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (size_t index : order) {
    taken.clear();
    for (size_t other : neighbours[index])
      if (plan.offsets[other] != nowhere)
        taken.push_back({plan.offsets[other], plan.offsets[other] + buffers[other].alignedBytes()});
    int64_t bytes = buffers[index].alignedBytes();
    plan.offsets[index] = findGap(taken, bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[index] + bytes);
  }
  return plan;
}

size_t Planner::highest(const MemoryPlan &plan) const {
  for (auto [index, offset] : enumerate(plan.offsets))
    if (offset + buffers[index].alignedBytes() == plan.bytes)
      return index;
  llvm_unreachable("the arena ends where a buffer ends");
}

void Planner::improve(SmallVector<size_t> order) {
  constexpr int attempts = 200;
  for (int attempt = 0; attempt < attempts && !isOptimal(); ++attempt) {
    MemoryPlan plan = place(order);
    if (!order.empty()) {
      auto *last = llvm::find(order, highest(plan));
      std::rotate(order.begin(), last, last + 1);
    }
    if (plan.bytes < best.bytes)
      best = std::move(plan);
  }
}

MemoryPlan weft::planMemory(ArrayRef<Lifetime> buffers) {
  auto length = [&](size_t i) { return buffers[i].last - buffers[i].first + 1; };
  auto bytes = [&](size_t i) { return buffers[i].alignedBytes(); };
  using Key = std::pair<int64_t, int64_t>;
  const std::function<Key(size_t)> keys[] = {
      [&](size_t i) { return Key(-bytes(i), -length(i)); },
      [&](size_t i) { return Key(-bytes(i) * length(i), -bytes(i)); },
      [&](size_t i) { return Key(-length(i), -bytes(i)); },
      [&](size_t i) { return Key(buffers[i].first, -bytes(i)); },
      [&](size_t i) { return Key(-buffers[i].last, -bytes(i)); },
  };

  Planner planner(buffers);
  for (const auto &key : keys) {
    SmallVector<size_t> order = to_vector(seq<size_t>(0, buffers.size()));
    sort(order, [&](size_t a, size_t b) { return std::pair(key(a), a) < std::pair(key(b), b); });
    planner.improve(std::move(order));
    if (planner.isOptimal())
      break;
  }
  return planner.takeBest();
}
