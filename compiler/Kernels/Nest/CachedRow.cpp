// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Nest/CachedRow.h"
#include "compiler/Kernels/Emission/Epilogue.h"

using namespace mlir;
using namespace weft;

std::optional<CachedRow> CachedRow::choose(KernelFunction &kernel, const AccessAnalysis &demand,
                                           ArrayRef<std::optional<CachedRow>> before,
                                           const IndexSpace &space) {
  // Short rows stay in registers; long ones would evict other data from the caches.
  constexpr int64_t shortest = 32;
  const ReductionDemand &reduction = demand.reductions[before.size()];
  linalg::GenericOp generic = reduction.generic;
  int64_t extent = space.count(reduction.reducedDims);
  if (reduction.reducedDims.size() != 1 || extent < shortest)
    return std::nullopt;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    Type element = getElementTypeOrSelf(operand->get().getType());
    if (!producer || !isTranscendental(producer) || !generic.payloadUsesValueFromOperand(operand) ||
        extent * element.getIntOrFloatBitWidth() / 8 > kernel.target.l2Bytes / 4)
      continue;
    CachedRow kept;
    kept.number = operand->getOperandNumber();
    kept.tensor = operand->get();
    kept.index = operandIndex(generic, *operand, reduction.iteration, space);
    kept.variable = getAffineDimExpr(reduction.reducedDims.front(), generic.getContext());
    bool isWantedElsewhere = llvm::any_of(demand.visited, [&](const auto &visit) {
      return visit.first == kept.tensor && visit.second != kept.index &&
             kept.placeOf(visit.second, space);
    });
    bool isKeptAlready = llvm::any_of(before, [&](const std::optional<CachedRow> &row) {
      return row && row->tensor == kept.tensor && row->placeOf(kept.index, space);
    });
    if (!isWantedElsewhere || isKeptAlready)
      continue;
    kept.row = {kernel.scratch(element, extent), {extent}};
    return kept;
  }
  return std::nullopt;
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
