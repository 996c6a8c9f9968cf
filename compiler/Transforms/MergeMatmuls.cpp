// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merges contractions of one lhs with several weights into one weft.multi_dot. The rhs are function
// arguments, so the first contraction dominates all that it replaces.
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace weft {
#define GEN_PASS_DEF_MERGEMATMULS
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// What contractions must have in common to be merged.
using Shared = std::tuple<Value, Attribute, Attribute, Type>;

bool readsOneWeight(DotGeneralOp dot) {
  return dot.getLhsBatch().empty() && isa<BlockArgument>(dot.getRhs()) &&
         dot.getRhs().getType().getRank() == 2 && dot.getRhsContract().size() == 1;
}

void merge(ArrayRef<DotGeneralOp> dots) {
  DotGeneralOp first = dots.front();
  SmallVector<Value> weights;
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (DotGeneralOp dot : dots) {
    weights.push_back(dot.getRhs());
    types.push_back(dot.getType());
    locations.push_back(dot.getLoc());
  }
  OpBuilder builder(first);
  auto merged = MultiDotOp::create(builder, builder.getFusedLoc(locations), types, first.getLhs(),
                                   weights, first.getLhsContract(), first.getRhsContract());
  for (auto [index, product] : llvm::enumerate(merged.getProducts())) {
    DotGeneralOp dot = dots[index];
    dot.getResult().replaceAllUsesWith(product);
    dot.erase();
  }
}

struct MergeMatmuls : weft::impl::MergeMatmulsBase<MergeMatmuls> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      llvm::MapVector<Shared, SmallVector<DotGeneralOp>> groups;
      for (auto dot : block.getOps<DotGeneralOp>())
        if (readsOneWeight(dot))
          groups[{dot.getLhs(), dot.getLhsContractAttr(), dot.getRhsContractAttr(),
                  dot.getRhs().getType().getElementType()}]
              .push_back(dot);
      for (auto &[shared, dots] : groups) {
        if (dots.size() < 2)
          continue;
        numMerged += dots.size();
        merge(dots);
      }
    }
  }
};

} // namespace
