// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Contraction/PanelBuffer.h"

using namespace mlir;
using namespace weft;

PanelBuffer::PanelBuffer(KernelFunction &kernel, ElementEmitter &point, Location loc,
                         ArrayRef<unsigned> reduced, int64_t panels, int64_t lanes, Type element,
                         int64_t steps)
    : IndexArithmetic(kernel.builder, loc), point(point), lanes(lanes), size(steps * lanes) {
  MLIRContext *context = builder.getContext();
  position = getAffineDimExpr(reduced.back(), context) * lanes;
  for (unsigned dim : llvm::reverse(reduced.drop_back())) {
    position = position + getAffineDimExpr(dim, context) * size;
    size *= point.space.extent(dim);
  }
  memory = kernel.scratch(element, panels * size);
  AffineExpr first = point.space.addDim(panels * size);
  start = cast<AffineDimExpr>(first).getPosition();
  position = position + first;
}

void PanelBuffer::enter(Value number, Value chunkStart) {
  // The scratch is indexed by steps of the chunk, the point by steps of the whole sum.
  Value panel = times(number, size);
  Value before = times(chunkStart, lanes);
  point.setDim(start, subtract(panel, before));
}
