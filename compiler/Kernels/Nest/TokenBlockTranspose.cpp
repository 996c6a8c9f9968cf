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

LogicalResult TokenBlockTranspose::read(DictionaryAttr part) {
  schedule = readFields<TransposeSchedule>(part);
  if (schedule.width != width)
    return kernel.refuse() << "schedule: expected lanes of " << width << ", found "
                           << schedule.width;
  if (schedule.reducedLanes.size() != demand.reductions.size())
    return kernel.refuse() << "schedule: expected reduced_lanes of " << demand.reductions.size()
                           << " reductions, found " << schedule.reducedLanes.size();
  for (auto [reduction, lanes] : llvm::zip_equal(demand.reductions, schedule.reducedLanes))
    if (lanes >= 0 && (!rowByRow() || !canReduceLanes(reduction) ||
                       lanes >= int64_t(reduction.reducedDims.size())))
      return kernel.refuse() << "schedule: expected reduced_lanes -1, as the reduction has no such "
                                "lanes, found "
                             << lanes;
  return success();
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
  for (auto [reduction, lanes] : llvm::zip_equal(demand.reductions, schedule.reducedLanes)) {
    ReductionSchedule how{{width, schedule.groups}, lanes, schedule.unroll};
    reduced.add(reduction, emitReduction(point, reduction, how));
  }
}

void TokenBlockTranspose::emitIfCounting(ArrayRef<unsigned> known,
                                         llvm::function_ref<void()> body) {
  ArrayRef<int64_t> bound = kernel.bound(), shape = tensorType(target.tensor).getShape();
  if (bound.empty() || !bound[0] || target.tensor != kernel.roots[target.root])
    return body();
  // Where the rows of a result are in blocks, its last dim in memory is their place within one.
  int64_t largest = bound[2], rows = shape[bound[3]];
  bool inBlocks = rows < largest;
  AffineExpr row = index[bound[3]];
  if (inBlocks)
    row = row * shape.back() + index.back();
  for (unsigned dim = 0; dim < space.size(); ++dim)
    if (dim != lane && row.isFunctionOfDim(dim) && !llvm::is_contained(known, dim))
      return body();
  point.setDim(lane, constant(0));
  point.forget();
  Value end = kernel.rowsEnd(inBlocks ? largest : rows);
  emitIf(builder, loc, is(arith::CmpIPredicate::ult, point.indexValue(row), end), body);
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
