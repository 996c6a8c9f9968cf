// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The minimal cut of a flow network: the cheapest set of edges without which nothing flows from the
// source to the sink.
#ifndef WEFT_COMPILER_AUTODIFF_MINCUT_H
#define WEFT_COMPILER_AUTODIFF_MINCUT_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

namespace weft {

/// A network with integer capacities. Nodes are numbers; 0 is the source, 1 the sink.
class MinCut {
public:
  static constexpr int source = 0, sink = 1;
  /// The capacity of an edge that is never cut. Sums of it do not overflow.
  static constexpr int64_t infinite = int64_t(1) << 50;

  int addNode() { return nodes++; }
  void addEdge(int from, int to, int64_t capacity);

  /// For each node whether it is on the source's side of a minimal cut; of several such cuts, the
  /// one nearest the source. Source: Dinic, "Algorithm for solution of a problem of maximum flow",
  /// 1970.
  std::vector<bool> sourceSide();

private:
  struct Edge {
    int to;
    int64_t residual;
  };
  bool findLevels();
  int64_t push(int node, int64_t amount);

  int nodes = 2;
  std::vector<Edge> edges; ///< each followed by its reverse
  std::vector<std::vector<int>> leaving;
  std::vector<int> level;
  std::vector<size_t> next;
};

} // namespace weft

#endif
