// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/PackedBPanel.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace weft;

static Type elementOf(const ContractionOperand &operand) {
  return getElementTypeOrSelf(operand.memory.getType());
}

PackedBPanel::PackedBPanel(KernelFunction &kernel, ElementEmitter &point, Location loc,
                           const ContractionRoles &roles, unsigned depth,
                           const ContractionSchedule &schedule)
    : IndexArithmetic(kernel.builder, loc), point(point), roles(roles), depth(depth),
      groups(schedule.groups), lanes(schedule.groups * schedule.width),
      stepsAtOnce(schedule.copiedSteps),
      type(VectorType::get({schedule.width}, elementOf(roles.vectors))),
      scratch(kernel, point, loc, depth, /*panels=*/2, lanes, type.getElementType(),
              schedule.chunk),
      next(point, roles, depth, lanes, stepsAtOnce) {}

void PackedBPanel::enter(Value number, Value chunkStart, int64_t chunkSize, Value turns,
                         Value isFirst) {
  Value half = remainderOf(number, 2);
  scratch.enter(half, chunkStart);
  other = times(subtract(constant(1), half), scratch.panelSize());
  Value before = least(times(turns, next.stepsOfTurn(chunkSize)), constant(chunkSize));
  Value from = arith::SelectOp::create(builder, loc, isFirst, constant(0), before);
  emitLoop(builder, loc, from, constant(chunkSize), 1, {}, [&](Value step, ValueRange) {
    point.setDim(depth, add(chunkStart, step));
    copyStep(point.indexValue(scratch.position));
    return SmallVector<Value>();
  });
}

/// Packs the vectors at the point's step.
void PackedBPanel::copyStep(Value to) {
  Value source = point.getBuffer(roles.vectors.memory)->flat;
  Value from = point.indexValue(roles.vectors.position);
  for (int64_t group : llvm::seq(groups)) {
    int64_t offset = group * type.getNumElements();
    Value vector = vector::LoadOp::create(builder, loc, type, source, add(from, offset));
    vector::StoreOp::create(builder, loc, vector, scratch.memory, add(to, offset));
  }
}

void PackedBPanel::emitAhead() {
  constexpr int64_t fetchesAhead = 2;
  next.visit([&](Value first) {
    // With more row tiles than needed, the first ones pack the whole panel.
    emitIf(builder, loc, next.has(first), [&] {
      for (int64_t i : llvm::seq(stepsAtOnce)) {
        Value step = next.moveTo(add(first, i));
        copyStep(add(other, times(step, lanes)));
        next.moveTo(add(first, i + fetchesAhead * stepsAtOnce));
        emitRunPrefetch(builder, loc, point.getBuffer(roles.vectors.memory)->flat,
                        point.indexValue(roles.vectors.position), lanes, CacheLevel::First);
      }
    });
  });
}
