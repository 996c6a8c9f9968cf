// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/DotProduct/GroupedMatmulSchedule.h"
#include "compiler/Kernels/Emission/BlockedSummation.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Scheduling/Choices.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

/// Chunks of sums as long as rounding allows; a register tile of half the vectors has twice the
/// rows, where it has enough registers for that.
FailureOr<ChosenSchedule> weft::scheduleGroupedMatmul(const KernelToSchedule &kernel) {
  auto op = onlyOp<GroupedDotOp>(kernel.kernel);
  if (!op)
    return ChosenSchedule();
  ArrayRef<int64_t> shape = tensorType(op.getWeights()).getShape();
  int64_t columns = shape[1], depth = shape[2];
  constexpr int64_t columnsOfPiece = 48, piecesOfSlab = 8, manyGroups = 4;
  GroupedMatmulSchedule schedule;
  schedule.width = kernel.target.lanes(32);
  schedule.groups = kernel.target.vectorRegisters >= 32 ? 4 : 2;
  schedule.narrowRows = schedule.groups >= manyGroups ? 2 * schedule.rows : schedule.rows;
  schedule.chunk = std::min(depth, 2 * longestChain);
  schedule.piece = columnsOfPiece;
  schedule.slab = piecesOfSlab;
  int64_t pieces = llvm::divideCeil(columns, columnsOfPiece);
  schedule.claim = std::min<int64_t>(piecesOfSlab, llvm::divideCeil(pieces, 2));
  int64_t flops = 2 * tensorType(op.getRows()).getDimSize(0) * columns * depth;
  return ChosenSchedule{kernel.isSerial(flops < smallFlops), {kernel.part(schedule)}};
}
