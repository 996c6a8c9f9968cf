// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Transforms/DynamicTopologicalOrder.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace llvm;
using namespace weft;

DynamicTopologicalOrder::DynamicTopologicalOrder(unsigned size) : order(size), place(size) {
  std::iota(order.begin(), order.end(), 0);
  std::iota(place.begin(), place.end(), 0);
}

/// The groups before position `end` that depend on `group`, directly or transitively.
SmallDenseSet<unsigned>
DynamicTopologicalOrder::findConsumers(unsigned group, unsigned end,
                                       ForEachConsumer forEachConsumer) const {
  SmallDenseSet<unsigned> found;
  SmallVector<unsigned> worklist{group};
  while (!worklist.empty())
    forEachConsumer(worklist.pop_back_val(), [&](unsigned consumer) {
      if (consumer != group && place[consumer] < end && found.insert(consumer).second)
        worklist.push_back(consumer);
    });
  return found;
}

bool DynamicTopologicalOrder::merge(unsigned into, unsigned from, ForEachConsumer forEachConsumer) {
  unsigned start = std::min(place[into], place[from]), end = std::max(place[into], place[from]);
  unsigned first = order[start], last = order[end];
  SmallDenseSet<unsigned> behind = findConsumers(first, end, forEachConsumer);
  for (unsigned group : behind) {
    bool leadsBack = false;
    forEachConsumer(group, [&](unsigned consumer) { leadsBack |= consumer == last; });
    if (leadsBack)
      return false;
  }

  // In the new order, groups that depend on the first follow the merged group; all others in
  // between precede it, including all that the last depends on.
  SmallVector<unsigned> stretch;
  auto between = ArrayRef(order).slice(start + 1, end - start - 1);
  copy_if(between, std::back_inserter(stretch),
          [&](unsigned group) { return !behind.contains(group); });
  stretch.push_back(into);
  copy_if(between, std::back_inserter(stretch),
          [&](unsigned group) { return behind.contains(group); });
  stretch.push_back(from);
  for (auto [offset, group] : enumerate(stretch)) {
    order[start + offset] = group;
    place[group] = start + offset;
  }
  return true;
}
