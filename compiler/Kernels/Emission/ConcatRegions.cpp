// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/Kernels/Emission/ConcatRegions.h"

using namespace mlir;
using namespace weft;

SmallVector<int64_t> weft::concatBounds(const AccessAnalysis &demand, unsigned dim,
                                        const IndexSpace &space) {
  int64_t extent = space.extent(dim);
  SmallVector<int64_t> bounds{0, extent};
  auto add = [&](int64_t bound) {
    if (bound > 0 && bound < extent)
      bounds.push_back(bound);
  };
  for (const auto &[tensor, index] : demand.visited) {
    auto insert = tensor.getDefiningOp<tensor::InsertSliceOp>();
    if (!insert)
      continue;
    for (auto [i, expr] : llvm::enumerate(index)) {
      AffineExpr ahead = space.simplify(expr - getAffineDimExpr(dim, expr.getContext()));
      auto shift = dyn_cast<AffineConstantExpr>(ahead);
      if (!shift)
        continue;
      int64_t begin = insert.getStaticOffset(i) - shift.getValue();
      add(begin);
      add(begin + insert.getStaticSize(i));
    }
  }
  llvm::sort(bounds);
  bounds.erase(llvm::unique(bounds), bounds.end());
  return bounds;
}
