// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Autodiff/MinCut.h"
#include <algorithm>
#include <deque>

using namespace weft;

void MinCut::addEdge(int from, int to, int64_t capacity) {
  leaving.resize(std::max<size_t>(leaving.size(), nodes));
  leaving[from].push_back(static_cast<int>(edges.size()));
  edges.push_back({to, capacity});
  leaving[to].push_back(static_cast<int>(edges.size()));
  edges.push_back({from, 0});
}

bool MinCut::findLevels() {
  level.assign(nodes, -1);
  level[source] = 0;
  std::deque<int> queue{source};
  while (!queue.empty()) {
    int node = queue.front();
    queue.pop_front();
    for (int number : leaving[node])
      if (const Edge &edge = edges[number]; edge.residual > 0 && level[edge.to] < 0) {
        level[edge.to] = level[node] + 1;
        queue.push_back(edge.to);
      }
  }
  return level[sink] >= 0;
}

int64_t MinCut::push(int node, int64_t amount) {
  if (node == sink)
    return amount;
  for (size_t &at = next[node]; at < leaving[node].size(); ++at) {
    int number = leaving[node][at];
    Edge &edge = edges[number];
    if (edge.residual <= 0 || level[edge.to] != level[node] + 1)
      continue;
    int64_t pushed = push(edge.to, std::min(amount, edge.residual));
    if (pushed == 0)
      continue;
    edges[number].residual -= pushed;
    edges[number ^ 1].residual += pushed;
    return pushed;
  }
  return 0;
}

std::vector<bool> MinCut::sourceSide() {
  leaving.resize(nodes);
  while (findLevels()) {
    next.assign(nodes, 0);
    while (push(source, infinite) > 0)
      continue;
  }
  std::vector<bool> side(nodes);
  std::transform(level.begin(), level.end(), side.begin(), [](int each) { return each >= 0; });
  return side;
}
