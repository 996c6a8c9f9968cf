// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Attention/AttentionSchedule.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Scheduling/Choices.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir;
using namespace weft;

/// Nothing if blocks of queries in memory are not whole vectors.
static std::optional<AttentionSchedule> chooseAttention(const AttentionProblem &problem,
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
  int64_t keyTiles = std::clamp<int64_t>(fitting / schedule.keyTile, 1, tiles);
  schedule.keyBlock = keyTiles * schedule.keyTile;
  schedule.online = tiles > keyTiles;

  constexpr int64_t enoughFlops = 500'000;
  int64_t cells = llvm::divideCeil(problem.queries, schedule.lanes()) * problem.batches;
  schedule.claim = KernelFunction::piecesOf(cells, problem.flops(), enoughFlops);
  return schedule;
}

FailureOr<ChosenSchedule> weft::scheduleAttention(const KernelToSchedule &kernel) {
  auto op = onlyOp<AttentionOp>(kernel.kernel);
  if (!op)
    return ChosenSchedule();
  auto problem = AttentionProblem::of(op);
  std::optional<AttentionSchedule> chosen = chooseAttention(problem, kernel.target);
  if (!chosen)
    return ChosenSchedule();
  return ChosenSchedule{kernel.isSerial(problem.flops() < smallFlops), {kernel.part(*chosen)}};
}
