// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Attention/AttentionSchedule.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir;
using namespace weft;

/// Number of contiguous tokens in a block of the layout, or 0 if it is not blocked.
static int64_t tokenTile(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  LayoutAttr layout = layoutOf(type);
  return layout && layout.getTileDim() == type.getRank() - 2 ? layout.getTileSize() : 0;
}

AttentionProblem AttentionProblem::of(AttentionOp op) {
  auto queryType = cast<RankedTensorType>(op.getQuery().getType());
  auto keyType = cast<RankedTensorType>(op.getKey().getType());
  auto valueType = cast<RankedTensorType>(op.getValue().getType());
  int64_t rank = queryType.getRank();
  AttentionProblem problem;
  problem.elementBits = queryType.getElementTypeBitWidth();
  problem.queries = queryType.getDimSize(rank - 2);
  problem.keys = keyType.getDimSize(rank - 2);
  problem.features = queryType.getDimSize(rank - 1);
  problem.valueFeatures = valueType.getDimSize(rank - 1);
  problem.queryTile = tokenTile(op.getQuery());
  problem.keyTile = tokenTile(op.getKey());
  problem.batches = ShapedType::getNumElements(queryType.getShape().drop_back(2));
  problem.causal = op.getCausal();
  return problem;
}

int64_t AttentionProblem::flops() const {
  int64_t all = 2 * batches * queries * keys * (features + valueFeatures);
  return causal ? all / 2 : all;
}

int64_t AttentionSchedule::rowsOf(int64_t tileGroups, const TargetInfo &target) const {
  // Accumulators, one row of vectors, one broadcast; a power of two, so that tiles divide key
  // blocks, which are whole vectors.
  int64_t most = (target.vectorRegisters - 1 - tileGroups) / tileGroups;
  return std::min<int64_t>(llvm::bit_floor<uint64_t>(std::max<int64_t>(most, 1)), width);
}
