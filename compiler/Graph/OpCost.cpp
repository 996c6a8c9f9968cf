// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an op's work is that does not say it.
#include "compiler/Graph/OpCost.h"

using namespace mlir;
using namespace weft;

OpWork weft::workOf(Operation *op) {
  if (auto known = dyn_cast<WorkOpInterface>(op))
    return known.work();
  if (op->hasTrait<OpTrait::Elementwise>())
    return OpWork::functions(1);
  if (isa<CompositeOpInterface>(op))
    return OpWork::functions(4);
  return {OpWork::Kind::Moving};
}

Placement weft::placementOf(Operation *op) {
  auto known = dyn_cast_if_present<PlacementOpInterface>(op);
  return known ? known.placement() : Placement{};
}
