// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/PanelPrefetch.h"
#include "compiler/Kernels/Emission/Prefetch.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft;

static int64_t bytesOf(Value memory) {
  return getElementTypeOrSelf(memory.getType()).getIntOrFloatBitWidth() / 8;
}

int64_t PanelPrefetch::packedBytes(const ContractionRoles &roles, ArrayRef<unsigned> reduced,
                                   const IndexSpace &space) {
  AffineExpr position = roles.vectors.position;
  int64_t elements = space.extent(roles.lane);
  auto isNext = [&](unsigned dim) { return space.coefficientOf(position, dim) == elements; };
  if (roles.lanesPerScalar > 0 || reduced.empty() || roles.outerPanels.size() != 1 ||
      space.coefficientOf(position, roles.lane) != 1)
    return 0;
  for (unsigned dim : llvm::reverse(reduced)) {
    if (!isNext(dim))
      return 0;
    elements *= space.extent(dim);
  }
  unsigned panel = roles.outerPanels.front();
  return isNext(panel) ? space.extent(panel) * elements * bytesOf(roles.vectors.memory) : 0;
}

int64_t PanelPrefetch::lineElements() const { return lineBytes / bytesOf(roles.vectors.memory); }

void PanelPrefetch::startTile(Value turn, Value start, int64_t steps, int64_t panelsBetween) {
  int64_t allSteps = steps;
  for (unsigned dim : reduced.drop_back()) {
    point.setDim(dim, constant(0));
    allSteps *= point.space.extent(dim);
  }
  point.setDim(reduced.back(), start);
  panelStart = point.indexValue(roles.vectors.position);
  int64_t panel = *point.space.coefficientOf(roles.vectors.position, roles.outerPanels.front());
  Value next = add(panelStart, allSteps * point.space.extent(roles.lane) + panelsBetween * panel);
  shareStart = add(next, times(turn, allSteps / stepsPerFetch * lines * lineElements()));
}

void PanelPrefetch::emit() {
  Value offset = subtract(point.indexValue(roles.vectors.position), panelStart);
  Value fetches = dividedBy(offset, stepsPerFetch * point.space.extent(roles.lane));
  Value first = add(shareStart, times(fetches, lines * lineElements()));
  Value memory = point.getBuffer(roles.vectors.memory)->flat;
  for (int64_t line = 0; line < lines; ++line)
    emitPrefetch(builder, loc, memory, add(first, line * lineElements()), CacheLevel::Second);
}
