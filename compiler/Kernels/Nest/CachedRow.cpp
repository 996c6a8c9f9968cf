// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/CachedRow.h"

using namespace mlir;
using namespace weft;

CachedRow::CachedRow(const ReductionDemand &reduction, unsigned operand, const IndexSpace &space)
    : number(operand), extent(space.count(reduction.reducedDims)) {
  linalg::GenericOp generic = reduction.generic;
  OpOperand &use = *generic.getDpsInputOperand(operand);
  tensor = use.get();
  index = operandIndex(generic, use, reduction.iteration, space);
  variable = getAffineDimExpr(reduction.reducedDims.front(), generic.getContext());
}

bool CachedRow::canBe(const ReductionDemand &reduction, int64_t operand) {
  linalg::GenericOp generic = reduction.generic;
  return reduction.reducedDims.size() == 1 && operand >= 0 && operand < generic.getNumDpsInputs() &&
         generic.payloadUsesValueFromOperand(generic.getDpsInputOperand(operand));
}

void CachedRow::allocate(KernelFunction &kernel) {
  row = {kernel.scratch(elementType(), extent), {extent}};
}

std::optional<AffineExpr> CachedRow::placeOf(ArrayRef<AffineExpr> at,
                                             const IndexSpace &space) const {
  std::optional<AffineExpr> place;
  for (auto [kept, wanted] : llvm::zip_equal(index, at)) {
    if (kept == variable && !place)
      place = wanted;
    else if (kept != wanted)
      return std::nullopt;
  }
  if (!place)
    return std::nullopt;
  auto [low, high] = space.rangeOf(*place);
  bool isWithin = low >= 0 && high < space.extent(cast<AffineDimExpr>(variable).getPosition());
  return isWithin ? place : std::nullopt;
}

void CachedRow::fill(ElementEmitter &point, const Emitted &value) const {
  point.store(row, variable, value);
}

std::optional<Emitted> CachedRow::find(ElementEmitter &point, Value wanted,
                                       ArrayRef<AffineExpr> at) const {
  if (wanted != tensor)
    return std::nullopt;
  std::optional<AffineExpr> place = placeOf(at, point.space);
  return place ? std::optional<Emitted>(point.load(row, *place)) : std::nullopt;
}
