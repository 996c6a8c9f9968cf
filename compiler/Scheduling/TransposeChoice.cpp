// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transposes between rows and token blocks, where they cost less than the loops of a nest.
#include "compiler/Kernels/Nest/TransposeProblem.h"
#include "compiler/Kernels/Nest/TransposeSchedule.h"
#include "compiler/Scheduling/Choices.h"
#include "compiler/Scheduling/NestChoice.h"
#include "compiler/Scheduling/WorkEstimate.h"

using namespace mlir;
using namespace weft;

/// Squares are at least half full, what is transposed stays in L2, and a nest would read more of
/// memory element by element.
static bool isWorthwhile(const TransposeProblem &problem, const TargetInfo &target) {
  return problem.isOwn && problem.strided < problem.stridedOtherwise &&
         problem.shortest >= target.lanes(32) / 2 && problem.scratchBytes <= target.l2Bytes / 2;
}

using Match = std::optional<TransposeProblem>(KernelFunction &, bool interior);

static ChosenSchedule scheduleTranspose(const KernelToSchedule &kernel, Match *match) {
  TransposeSchedule schedule;
  schedule.interior = !chooseInteriors(kernel.kernel).empty();
  KernelFunction unemitted(kernel.kernel, kernel.target);
  std::optional<TransposeProblem> problem = match(unemitted, schedule.interior);
  unemitted.discard();
  if (!problem || !isWorthwhile(*problem, kernel.target))
    return {};
  schedule.width = kernel.target.lanes(32);
  for (const ReductionDemand &reduction : problem->reductions)
    schedule.reducedLanes.push_back(
        problem->rowByRow ? chooseReducedLanes(reduction, problem->space) : -1);
  WorkEstimate work(kernel.kernel);
  schedule.claim = work.leastPieces(problem->cells);
  return {kernel.isSerial(work.isSmall()), {kernel.part(schedule)}};
}

FailureOr<ChosenSchedule> weft::scheduleTokenBlocksToRows(const KernelToSchedule &kernel) {
  return scheduleTranspose(kernel, matchTokenBlocksToRows);
}

FailureOr<ChosenSchedule> weft::scheduleRowsToTokenBlocks(const KernelToSchedule &kernel) {
  return scheduleTranspose(kernel, matchRowsToTokenBlocks);
}
