// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local search: one buffer after another moves to the best of a few offsets that are free for its
// whole lifetime, its current one included.
#include "compiler/Lowering/Entries/ThreadLocalPlacement.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace weft;

namespace {

struct Range {
  int64_t begin, end;

  int64_t size() const { return end - begin; }
  int64_t commonWith(Range other) const {
    return std::max<int64_t>(0, std::min(end, other.end) - std::max(begin, other.begin));
  }
  bool holds(Range other) const { return begin <= other.begin && other.end <= end; }
};

class Mover {
public:
  Mover(ArrayRef<Lifetime> buffers, MemoryPlan &plan, int64_t threads);

  /// Returns whether any buffer moved.
  bool moveAll();

private:
  /// A buffer that is live shortly before or after another one.
  struct Other {
    size_t index;
    int64_t distance; ///< number of starts and ends of lifetimes in between
  };

  Range rangeOf(size_t index) const;
  SmallVector<Range> gapsFor(size_t index) const;
  SmallVector<int64_t> placesFor(size_t index) const;
  double costOf(size_t index, int64_t place) const;
  int64_t stayingBytes(Range a, Range b) const;

  ArrayRef<Lifetime> buffers;
  MemoryPlan &plan;
  int64_t threads;
  SmallVector<SmallVector<size_t>> alive; ///< buffers with overlapping lifetimes
  SmallVector<SmallVector<Other>> near;
};

} // namespace

/// `first` and `last` of all buffers as ranks in their common order.
static SmallVector<std::pair<int64_t, int64_t>> timesOf(ArrayRef<Lifetime> buffers) {
  SmallVector<int64_t> steps;
  for (const Lifetime &buffer : buffers)
    steps.append({buffer.first, buffer.last});
  sort(steps);
  steps.erase(llvm::unique(steps), steps.end());
  auto numberOf = [&](int64_t step) { return lower_bound(steps, step) - steps.begin(); };
  return map_to_vector(buffers, [&](const Lifetime &buffer) {
    return std::pair<int64_t, int64_t>(numberOf(buffer.first), numberOf(buffer.last));
  });
}

Mover::Mover(ArrayRef<Lifetime> buffers, MemoryPlan &plan, int64_t threads)
    : buffers(buffers), plan(plan), threads(threads), alive(buffers.size()), near(buffers.size()) {
  // Beyond this distance, data has been evicted or overwritten by others.
  constexpr int64_t farthest = 12;
  SmallVector<std::pair<int64_t, int64_t>> times = timesOf(buffers);
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < buffers.size(); ++j) {
      if (i == j || buffers[j].bytes == 0)
        continue;
      int64_t distance =
          std::max(times[i].first - times[j].second, times[j].first - times[i].second);
      if (distance <= 0)
        alive[i].push_back(j);
      else if (distance <= farthest)
        near[i].push_back({j, distance});
    }
}

Range Mover::rangeOf(size_t index) const {
  return {plan.offsets[index], plan.offsets[index] + buffers[index].alignedBytes()};
}

/// Ranges that are free during the lifetime of buffer `index`.
SmallVector<Range> Mover::gapsFor(size_t index) const {
  SmallVector<Range> taken{{plan.bytes, plan.bytes}};
  for (size_t other : alive[index])
    taken.push_back(rangeOf(other));
  sort(taken, [](Range a, Range b) { return a.begin < b.begin; });
  SmallVector<Range> gaps;
  int64_t end = 0;
  for (Range range : taken) {
    if (range.begin > end)
      gaps.push_back({end, range.begin});
    end = std::max(end, range.end);
  }
  return gaps;
}

/// Candidate offsets of buffer `index`: both ends of gaps, and those that centre it on buffers live
/// shortly before or after, so that the threads' partitions about coincide.
SmallVector<int64_t> Mover::placesFor(size_t index) const {
  int64_t bytes = buffers[index].alignedBytes();
  SmallVector<Range> gaps = gapsFor(index);
  SmallVector<int64_t> places;
  auto add = [&](Range gap, int64_t place) {
    if (gap.holds({place, place + bytes}))
      places.push_back(place);
  };
  for (Range gap : gaps) {
    add(gap, gap.begin);
    add(gap, gap.end - bytes);
    for (auto [other, distance] : near[index]) {
      Range range = rangeOf(other);
      int64_t middle = (range.begin + range.end - bytes) / 2;
      add(gap, alignDown(std::max<int64_t>(middle, 0), arenaAlignment));
    }
  }
  sort(places);
  places.erase(llvm::unique(places), places.end());
  return places;
}

/// Bytes that belong to the same thread's partition of both ranges.
int64_t Mover::stayingBytes(Range a, Range b) const {
  auto part = [&](Range range, int64_t thread) {
    return Range{range.begin + range.size() * thread / threads,
                 range.begin + range.size() * (thread + 1) / threads};
  };
  int64_t bytes = 0;
  for (int64_t thread = 0; thread < threads; ++thread)
    bytes += part(a, thread).commonWith(part(b, thread));
  return bytes;
}

/// Bytes that change threads if buffer `index` is at `place`, minus a fraction of those that do
/// not, as these are still in cache; nearer buffers weigh more.
double Mover::costOf(size_t index, int64_t place) const {
  constexpr double worthOfStaying = 0.25;
  Range range{place, place + buffers[index].alignedBytes()};
  double cost = 0;
  for (auto [other, distance] : near[index]) {
    Range there = rangeOf(other);
    int64_t common = range.commonWith(there), staying = stayingBytes(range, there);
    cost += ((common - staying) - worthOfStaying * staying) / double(distance * distance);
  }
  return cost;
}

bool Mover::moveAll() {
  bool moved = false;
  for (size_t index = 0; index < buffers.size(); ++index) {
    int64_t &offset = plan.offsets[index];
    double least = costOf(index, offset);
    for (int64_t place : placesFor(index))
      if (double cost = costOf(index, place); cost < least) {
        offset = place;
        least = cost;
        moved = true;
      }
  }
  return moved;
}

void weft::placeThreadLocally(ArrayRef<Lifetime> buffers, MemoryPlan &plan, int64_t threads) {
  constexpr int rounds = 6;
  Mover mover(buffers, plan, threads);
  for (int round = 0; round < rounds && mover.moveAll(); ++round)
    ;
}
