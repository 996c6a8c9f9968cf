// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/StridedPrefetch.h"
#include "compiler/Kernels/Prefetch.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

static constexpr int64_t stepsPerFetch = ContractionSchedule::stepsPerFetch;

void StridedPrefetch::startTile(Value turn, Value start, int64_t size, Value nextStep,
                                int64_t panelsAhead) {
  begin = start;
  first = nextStep;
  share = times(turn, size / stepsPerFetch * steps);
  lastFetch = size - steps;
  Value current = point.indexValue(getAffineDimExpr(roles.lane, builder.getContext()));
  int64_t last = (llvm::divideCeil(point.space.extent(roles.lane), lanes) - 1) * lanes;
  lane = least(add(current, panelsAhead * lanes), constant(last));
}

void StridedPrefetch::emit() {
  Value memory = point.getBuffer(roles.vectors.memory)->flat;
  MLIRContext *context = builder.getContext();
  Value currentStep = point.indexValue(getAffineDimExpr(depth, context));
  Value currentLane = point.indexValue(getAffineDimExpr(roles.lane, context));
  Value fetches = dividedBy(subtract(currentStep, begin), stepsPerFetch);
  Value fetched = least(add(share, times(fetches, steps)), constant(lastFetch));
  point.setDim(roles.lane, lane);
  for (int64_t step : llvm::seq(steps)) {
    point.setDim(depth, add(first, add(fetched, step)));
    emitRunPrefetch(builder, loc, memory, point.indexValue(roles.vectors.position), lanes,
                    CacheLevel::Second);
  }
  point.setDim(roles.lane, currentLane);
  point.setDim(depth, currentStep);
}
