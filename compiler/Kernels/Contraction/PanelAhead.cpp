// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/PanelAhead.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

void PanelAhead::startTile(Value turn, Value start, int64_t size, Value nextStart,
                           int64_t panelsAhead) {
  begin = start;
  next = nextStart;
  share = times(turn, stepsOfTurn(size));
  last = size - 1;
  int64_t lastLane = (llvm::divideCeil(point.space.extent(roles.lane), lanes) - 1) * lanes;
  lane = least(add(point.dimValue(roles.lane), panelsAhead * lanes), constant(lastLane));
}

void PanelAhead::visit(llvm::function_ref<void(Value)> body) {
  Value currentStep = point.dimValue(depth), currentLane = point.dimValue(roles.lane);
  Value visits = dividedBy(subtract(currentStep, begin), ContractionSchedule::stepsPerFetch);
  point.setDim(roles.lane, lane);
  body(add(share, times(visits, steps)));
  point.setDim(roles.lane, currentLane);
  point.setDim(depth, currentStep);
}

Value PanelAhead::moveTo(Value step) {
  Value there = least(step, constant(last));
  point.setDim(depth, add(next, there));
  return there;
}
