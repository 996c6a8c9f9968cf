// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Nest/ScatterAxes.h"
#include "compiler/Scheduling/Choices.h"

using namespace mlir;
using namespace weft;

/// The outermost loop axis, if it gives every thread enough pieces; else the axis with the most
/// pieces, for which every thread has to test all updates.
static int64_t chooseOwned(const ScatterAxes &plan, int64_t block) {
  constexpr int64_t enoughPieces = 8;
  auto pieces = [&](const ScatterAxes::Axis &axis) { return plan.countPieces(axis, block); };
  for (auto [number, axis] : llvm::enumerate(plan.axes))
    if (!axis.isData() && pieces(axis) >= enoughPieces)
      return number;
  int64_t owned = 0;
  for (auto [number, axis] : llvm::enumerate(plan.axes))
    if (pieces(axis) > pieces(plan.axes[owned]))
      owned = number;
  return owned;
}

/// `byData`: whether an update belongs to the thread depends on data.
static bool isSmallScatter(ScatterOp op, bool byData) {
  int64_t elements = tensorType(op.getOperand()).getNumElements();
  int64_t updates = tensorType(op.getUpdates()).getNumElements();
  // Parallel execution costs a barrier, and a working set spread over the caches of several cores.
  constexpr int64_t smallWork = 16 << 10;
  if (elements + updates < smallWork)
    return true;
  // Whether an update belongs to the thread is an unpredictable branch.
  constexpr int64_t worthABranch = 8;
  int64_t indices = tensorType(op.getIndices().front()).getNumElements();
  return byData && updates < worthABranch * indices && elements < worthABranch * indices;
}

FailureOr<ChosenSchedule> weft::scheduleScatter(const KernelToSchedule &kernel) {
  auto op = onlyOp<ScatterOp>(kernel.kernel);
  if (!op)
    return ChosenSchedule();
  ScatterSchedule schedule;
  unsigned bits = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth();
  schedule.width = kernel.target.lanes(std::max(32u, bits));
  bool isSmall = true;
  if (tensorType(op.getOperand()).getNumElements() != 0) {
    ScatterAxes plan(op);
    schedule.owned = chooseOwned(plan, schedule.block());
    isSmall = isSmallScatter(op, plan.axes[schedule.owned].isData());
  }
  return ChosenSchedule{isSmall, {kernel.part(schedule)}};
}
