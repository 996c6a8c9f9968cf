// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merges are refused exactly where they would make a cycle, as a search of the whole graph says.
#include "compiler/Transforms/DynamicTopologicalOrder.h"
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

using namespace weft;

namespace {

/// Groups of nodes of an acyclic graph whose edges lead to larger numbers.
struct Groups {
  explicit Groups(unsigned size) : members(size), groupOf(size), consumers(size) {
    for (unsigned node = 0; node < size; ++node) {
      members[node] = {node};
      groupOf[node] = node;
    }
  }

  void forEachConsumer(unsigned group, llvm::function_ref<void(unsigned)> visit) const {
    for (unsigned node : members[group])
      for (unsigned consumer : consumers[node])
        visit(groupOf[consumer]);
  }

  bool leadsThroughAThird(unsigned from, unsigned to) const {
    std::set<unsigned> visited;
    std::vector<unsigned> worklist;
    auto follow = [&](unsigned group) {
      forEachConsumer(group, [&](unsigned consumer) {
        if (consumer != from && visited.insert(consumer).second)
          worklist.push_back(consumer);
      });
    };
    follow(from);
    visited.erase(to); // directly is no third
    std::erase(worklist, to);
    while (!worklist.empty()) {
      unsigned group = worklist.back();
      worklist.pop_back();
      if (group == to)
        return true;
      follow(group);
    }
    return false;
  }

  void merge(unsigned into, unsigned from) {
    for (unsigned node : members[from])
      groupOf[node] = into;
    members[into].insert(members[into].end(), members[from].begin(), members[from].end());
    members[from].clear();
  }

  std::vector<std::vector<unsigned>> members;
  std::vector<unsigned> groupOf;
  std::vector<std::vector<unsigned>> consumers;
};

} // namespace

TEST(DynamicTopologicalOrder, refusesExactlyWhatMakesACycle) {
  constexpr unsigned size = 24;
  std::mt19937 random(0);
  auto below = [&](unsigned end) { return unsigned(random() % end); };
  unsigned merged = 0, refused = 0;
  for (int graph = 0; graph < 300; ++graph) {
    Groups groups(size);
    for (unsigned node = 1; node < size; ++node)
      for (unsigned edge = 0; edge < 2; ++edge)
        groups.consumers[below(node)].push_back(node);
    DynamicTopologicalOrder order(size);
    for (int attempt = 0; attempt < 60; ++attempt) {
      unsigned into = groups.groupOf[below(size)], from = groups.groupOf[below(size)];
      if (into == from)
        continue;
      bool cycle = groups.leadsThroughAThird(into, from) || groups.leadsThroughAThird(from, into);
      bool done = order.merge(
          into, from, [&](unsigned group, auto visit) { groups.forEachConsumer(group, visit); });
      ASSERT_EQ(done, !cycle) << "graph " << graph << ", attempt " << attempt;
      ++(done ? merged : refused);
      if (done)
        groups.merge(into, from);
    }
  }
  EXPECT_GT(merged, 1000u);
  EXPECT_GT(refused, 1000u);
}
