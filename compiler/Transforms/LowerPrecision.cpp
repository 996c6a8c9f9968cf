// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contractions of f32 get operands rounded to bf16 and keep f32 accumulation. Each value is
// converted right after its definition, so that all uses can share the result.
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"

namespace weft {
#define GEN_PASS_DEF_LOWERPRECISION
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

struct LowerPrecision : weft::impl::LowerPrecisionBase<LowerPrecision> {
  void runOnOperation() override {
    OpBuilder builder(&getContext());
    llvm::DenseMap<Value, Value> converted;
    auto rounded = [&](Value value) {
      Value &result = converted[value];
      if (!result) {
        builder.setInsertionPointAfterValue(value);
        auto type = cast<RankedTensorType>(value.getType()).clone(builder.getBF16Type());
        result = ConvertOp::create(builder, value.getLoc(), type, value);
      }
      return result;
    };
    getOperation().walk([&](Operation *op) {
      if (!op->hasTrait<LinearContraction>() || !getElementTypeOrSelf(op->getOperand(0)).isF32())
        return;
      for (OpOperand &operand : op->getOpOperands())
        operand.set(rounded(operand.get()));
      ++numContractions;
    });
  }
};

} // namespace
