// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/WinogradSchedule.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Scheduling/Choices.h"
#include <algorithm>

using namespace mlir;
using namespace weft;

static WinogradSchedule chooseWinograd(const WinogradProblem &problem, const TargetInfo &target) {
  constexpr int64_t elementBytes = 4, mostSummands = 64;
  WinogradSchedule schedule;
  schedule.width = target.lanes(32);
  schedule.rows =
      std::min((target.vectorRegisters - 1 - schedule.groups) / schedule.groups, problem.tiles);
  // The intermediates of a group of tiles fill half of L2. Threads divide the groups or, with a
  // single group, the output panels; there are several groups if there are too few panels.
  int64_t lanes = schedule.lanes(), bytes = 16 * elementBytes * (problem.rowStride() + lanes);
  int64_t most = std::max(target.l2Bytes / 2 / bytes, schedule.rows);
  int64_t tileGroups = llvm::divideCeil(problem.tiles, most);
  int64_t threads = target.team();
  if (tileGroups > 1 || problem.outputs / lanes < std::min(threads, problem.tiles / schedule.rows))
    tileGroups = llvm::alignTo(tileGroups, threads);
  schedule.groupTiles =
      std::max<int64_t>(llvm::divideCeil(problem.tiles, tileGroups), schedule.rows);
  schedule.splitsTiles = schedule.groupTiles < problem.tiles;
  schedule.steps = problem.channels % 16 == 0 ? 16 : 8;
  // Rounding errors grow with the number of channels that are accumulated at once.
  schedule.summands = problem.channels;
  for (int64_t size = mostSummands; size >= mostSummands / 2 && schedule.summands > mostSummands;
       size -= schedule.steps)
    if (problem.channels % size == 0)
      schedule.summands = size;
  int64_t lines = schedule.steps * lanes * elementBytes / lineBytes;
  schedule.linesPerFetch =
      llvm::divideCeil(lines, llvm::divideCeil(schedule.groupTiles, schedule.rows));
  return schedule;
}

FailureOr<ChosenSchedule> weft::scheduleWinograd(const KernelToSchedule &kernel) {
  auto op = onlyOp<WinogradConvOp>(kernel.kernel);
  if (!op)
    return ChosenSchedule();
  WinogradSchedule chosen = chooseWinograd(WinogradProblem::of(op), kernel.target);
  return ChosenSchedule{/*serial=*/false, {kernel.part(chosen)}};
}
