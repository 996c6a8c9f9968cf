// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The derivative of weft.with_slopes, whose slopes are given as operands.
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"

using namespace mlir;
using namespace weft;

static LogicalResult withSlopesVjp(WithSlopesOp op, Cotangents &c) {
  bool skips = c.subgradient() == "zero";
  for (auto [number, input] : llvm::enumerate(op.getInputs())) {
    Value slope = op.getSlopes()[number], g = c.of();
    if (!c.wants(1 + number))
      continue;
    if (!op.getDims().empty())
      g = c.unreduce(g, input, op.getDims());
    c.give(1 + number, skips ? c.productOrZero(slope, g) : c.mul(g, slope));
  }
  return success();
}

void weft::deriveSlopes(MLIRContext *context) { derive<WithSlopesOp, withSlopesVjp>(context); }
