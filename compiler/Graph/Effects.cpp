// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is known of the results of ops that touch the world outside the graph.
#include "compiler/Graph/OpCost.h"
#include "compiler/Graph/OpStructure.h"

using namespace mlir;
using namespace weft;

void weft::structureEffects(MLIRContext *context) {
  place<Placement{.stored = true}, TorchFallbackOp>(context);
}
