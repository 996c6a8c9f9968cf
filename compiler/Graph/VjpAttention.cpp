// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The derivative of attention. It computes the weights again, since attention exists to avoid
// storing them.
#include "compiler/Graph/AttentionWeights.h"
#include "compiler/Graph/Constraints.h"
#include "compiler/Graph/Derivative.h"

using namespace mlir;
using namespace weft;

static void giveNarrow(Cotangents &c, unsigned operand, Value like, Value cotangent) {
  c.give(operand, c.leave(cotangent, tensorType(like).getElementType()));
}

static LogicalResult attentionVjp(AttentionOp op, Cotangents &c) {
  int64_t rows = op.getType().getRank() - 2, columns = rows + 1;
  SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, rows));
  auto dot = [&](Value x, Value y, int64_t ofX, int64_t ofY) -> Value {
    return c.create<DotGeneralOp>(x, y, batch, batch, ofX, ofY);
  };
  Value g = c.enter(c.of()), weights = attentionWeights(op, c, c.getBuilder());
  if (c.wants(2u))
    giveNarrow(c, 2, op.getValue(), dot(weights, g, rows, rows));
  bool wantsMask = op.getMask() && c.wants(3u);
  if (!c.wants(0u) && !c.wants(1u) && !wantsMask)
    return success();

  // The derivative of softmax is w * (g - sum(g * w)). That sum equals the sum of the result times
  // its cotangent.
  Value product = c.mul(dot(g, c.enter(op.getValue()), columns, columns), weights);
  Value along = c.reduce(ReduceKind::sum, c.mul(g, c.enter(op.getResult())), columns);
  Value scores = c.sub(product, c.mul(weights, c.unreduce(along, weights, columns)));
  bool replaces =
      op.getHiddenScore() && op.getMask() && tensorType(op.getMask()).getElementType().isInteger(1);
  if (replaces)
    scores = c.where(op.getMask(), scores);
  if (wantsMask)
    giveNarrow(c, 3, op.getMask(), scores);
  scores = c.scale(scores, op.getScale().convertToDouble());
  if (c.wants(0u))
    giveNarrow(c, 0, op.getQuery(), dot(scores, c.enter(op.getKey()), columns, rows));
  if (c.wants(1u))
    giveNarrow(c, 1, op.getKey(), dot(scores, c.enter(op.getQuery()), rows, rows));
  return success();
}

void weft::deriveAttention(MLIRContext *context) { derive<AttentionOp, attentionVjp>(context); }
