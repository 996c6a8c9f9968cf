// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass weft-drop-slopes: expects a graph that is not differentiated any more; leaves none of
// what was there for derivatives.
#include "compiler/Graph/AttributeNames.h"
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"

namespace weft {
#define GEN_PASS_DEF_DROPSLOPES
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

struct DropSlopes : weft::impl::DropSlopesBase<DropSlopes> {
  using DropSlopesBase::DropSlopesBase;

  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      op->removeAttr(attr::stopsGradient);
      op->removeAttr(attr::subgradient);
      if (auto given = dyn_cast<WithSlopesOp>(op)) {
        given.replaceAllUsesWith(given.getValue());
        given.erase();
      }
    });
  }
};

} // namespace
