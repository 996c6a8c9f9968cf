// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/ParallelDim.h"

using namespace mlir;
using namespace weft;

static ParallelDim dividedBy(AffineExpr index, const IndexSpace &space, unsigned dims) {
  ParallelDim found;
  index.walk([&](AffineExpr expr) {
    bool divides =
        expr.getKind() == AffineExprKind::FloorDiv || expr.getKind() == AffineExprKind::Mod;
    if (!divides)
      return;
    auto binary = cast<AffineBinaryOpExpr>(expr);
    auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
    auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (dim && divisor && dim.getPosition() < dims &&
        space.extent(dim.getPosition()) % divisor.getValue() == 0)
      found = {dim.getPosition(), divisor.getValue()};
  });
  return found;
}

ParallelDim weft::dividedDim(const AccessAnalysis &demand, const IndexSpace &space, unsigned dims,
                             int64_t width) {
  for (const ReductionDemand &reduction : demand.reductions)
    for (AffineExpr expr : reduction.index)
      if (ParallelDim found = dividedBy(expr, space, dims))
        return found;
  for (const ScanDemand &scan : demand.scans)
    for (AffineExpr expr : scan.index)
      if (ParallelDim found = dividedBy(expr, space, dims))
        return found;
  for (const Access &access : demand.accesses)
    if (access.position)
      if (ParallelDim found = dividedBy(*access.position, space, dims);
          found && found->second >= width)
        return found;
  return std::nullopt;
}
