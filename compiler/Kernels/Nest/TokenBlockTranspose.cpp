// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/TokenBlockTranspose.h"
#include "compiler/Graph/Constraints.h"

using namespace mlir;
using namespace weft;

TokenBlockTranspose::TokenBlockTranspose(KernelFunction &kernel, const StoreTarget &target)
    : IndexArithmetic(kernel.builder, kernel.loc), kernel(kernel), target(target),
      space(kernel.emitted.getContext()), point(kernel.elementEmitter(space)),
      width(kernel.target.lanes(32)) {
  point.setOverride([this](ElementEmitter &, Value tensor, ArrayRef<AffineExpr> at) {
    return reduced.find(tensor, at);
  });
}

AffineExpr TokenBlockTranspose::loopOver(int64_t extent, unsigned &dim) {
  AffineExpr variable = space.addDim(extent);
  dim = cast<AffineDimExpr>(variable).getPosition();
  return variable;
}

bool TokenBlockTranspose::isRows() const {
  RankedTensorType type = tensorType(target.tensor);
  return type.getRank() >= 2 && type.getNumElements() > 0 && type.getElementType().isF32();
}

int64_t TokenBlockTranspose::stridedAlongTokens() const {
  int64_t strided = stridedAccesses(demand.accesses, lane, space);
  for (const ReductionDemand &reduction : demand.reductions)
    strided += stridedAccesses(reduction.accesses, lane, space);
  return strided;
}

int64_t TokenBlockTranspose::stridedAlongFeatures() const {
  int64_t strided = stridedAccesses(demand.accesses, feature, space);
  for (const ReductionDemand &reduction : demand.reductions)
    strided += reduction.leastStrided(space);
  return strided;
}

int64_t TokenBlockTranspose::flops() const {
  return demand.flops(space, points, tensorType(target.tensor).getNumElements());
}

void TokenBlockTranspose::emitReductions() {
  reduced.clear();
  point.forget();
  for (const ReductionDemand &reduction : demand.reductions)
    reduced.add(reduction, emitReduction(point, reduction, width));
}

void TokenBlockTranspose::forEachVector(llvm::function_ref<void(Value first, int64_t count)> body) {
  int64_t features = space.extent(feature), whole = features / width * width;
  emitLoop(builder, loc, 0, whole, width, {}, [&](Value first, ValueRange) {
    body(first, width);
    return SmallVector<Value>();
  });
  if (whole < features)
    body(constant(whole), features - whole);
}

void TokenBlockTranspose::store(const Emitted &value) {
  point.store(kernel.rootBuffers[target.root], target.rootIndex(index), value);
}
