// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Graph/Constraints.h"
#include "compiler/Kernels/Emission/KernelFunction.h"
#include "compiler/Kernels/Ordering/Partition.h"
#include "compiler/Kernels/Ordering/SortSchedule.h"
#include "compiler/Scheduling/Choices.h"
#include <cmath>

using namespace mlir;
using namespace weft;

/// `size`: elements of a row. `count`: of its best that are kept. `bytes`: of a key.
static SortSchedule::Method chooseMethod(int64_t count, int64_t size, int64_t bytes) {
  // Bounds the worst case, a row whose elements each are the best so far: all are inserted.
  constexpr int64_t longestList = 128, shortList = 32;
  // An even number of radix passes ends in the buffer it began in.
  if (count > shortList && size >= 16 * count && bytes % 2 == 0)
    return SortSchedule::Candidates;
  if (count > longestList)
    return SortSchedule::Radix;
  // Expected moves of random rows: element i is among the best so far with probability count / i.
  double moves = 0.5 * count * count * (1 + std::log(double(size) / std::max<int64_t>(count, 1)));
  constexpr double passes = 5, setUp = 800; // in moves: per element, and per row
  return moves < passes * size + setUp ? SortSchedule::List : SortSchedule::Radix;
}

static SortSchedule chooseSort(SortOp op, const TargetInfo &target) {
  RankedTensorType type = tensorType(op.getOperand());
  int64_t count = op.getCount(), size = type.getDimSize(op.getDim());
  SortSchedule schedule;
  if (isPartition(op)) {
    schedule.width = target.lanes(64);
    schedule.method = SortSchedule::Partition;
    return schedule;
  }
  schedule.width = target.lanes(std::max(32u, type.getElementTypeBitWidth()));
  schedule.method = chooseMethod(count, size, type.getElementTypeBitWidth() / 8);
  if (schedule.method == SortSchedule::Candidates)
    schedule.capacity = std::max<int64_t>(4 * count, 512);
  return schedule;
}

/// Whether one thread is as fast as several.
static bool isSmallSort(SortOp op) {
  // Parallel execution costs a barrier, and a working set spread over the caches of several cores.
  constexpr int64_t smallWork = 4 << 10;
  return tensorType(op.getOperand()).getNumElements() < smallWork;
}

FailureOr<ChosenSchedule> weft::scheduleSort(const KernelToSchedule &kernel) {
  auto op = onlyOp<SortOp>(kernel.kernel);
  if (!op)
    return ChosenSchedule();
  SortSchedule chosen = chooseSort(op, kernel.target);
  return ChosenSchedule{isSmallSort(op), {kernel.part(chosen)}};
}
