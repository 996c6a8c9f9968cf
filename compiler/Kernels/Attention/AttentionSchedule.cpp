// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Attention/AttentionSchedule.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace weft;

int64_t AttentionSchedule::rowsOf(int64_t tileGroups, const TargetInfo &target) const {
  // Accumulators, one row of vectors, one broadcast; a power of two, so that tiles divide key
  // blocks, which are whole vectors.
  int64_t most = (target.vectorRegisters - 1 - tileGroups) / tileGroups;
  return std::min<int64_t>(llvm::bit_floor<uint64_t>(std::max<int64_t>(most, 1)), width);
}

std::optional<AttentionSchedule> AttentionSchedule::choose(const AttentionProblem &problem,
                                                           const TargetInfo &target) {
  AttentionSchedule schedule;
  schedule.width = target.lanes(problem.elementBits);
  int64_t width = schedule.width;
  int64_t block = problem.queryTile ? problem.queryTile : llvm::alignTo(problem.queries, width);
  schedule.groups =
      std::min<int64_t>(target.vectorRegisters >= 32 ? 4 : 2, llvm::divideCeil(block, width));
  while (problem.queryTile && schedule.groups && block % schedule.lanes() != 0)
    --schedule.groups;
  if (schedule.groups == 0 || problem.keyTile % width != 0)
    return std::nullopt;
  schedule.rows = schedule.rowsOf(schedule.groups, target);

  constexpr int64_t wholeTile = 64;
  schedule.keyTile = problem.keyTile ? problem.keyTile : std::min(problem.keys, wholeTile);
  int64_t tiles = llvm::divideCeil(problem.keys, schedule.keyTile);
  // Scores stay in L1 between the two products; mostKeys limits the length of a chain of additions.
  constexpr int64_t mostKeys = 256;
  int64_t rowBytes = schedule.lanes() * problem.elementBits / 8;
  int64_t fitting = std::min(target.l1Bytes / rowBytes, mostKeys);
  schedule.keyTiles = std::clamp<int64_t>(fitting / schedule.keyTile, 1, tiles);
  schedule.online = tiles > schedule.keyTiles;
  return schedule;
}
