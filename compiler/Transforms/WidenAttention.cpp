// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention in half precision becomes attention in f32 between conversions, which adjacent kernels
// fuse: the attention kernel computes in the type of its operands.
#include "compiler/Graph/Graph.h"
#include "compiler/Transforms/Passes.h"

namespace weft {
#define GEN_PASS_DEF_WIDENATTENTION
#include "compiler/Transforms/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

struct WidenAttention : weft::impl::WidenAttentionBase<WidenAttention> {
  void runOnOperation() override {
    getOperation().walk([&](AttentionOp attention) {
      Type element = getElementTypeOrSelf(attention.getType());
      if (!element.isBF16() && !element.isF16())
        return;
      OpBuilder builder(attention);
      auto converted = [&](Value value, Type to) -> Value {
        auto type = cast<RankedTensorType>(value.getType()).clone(to);
        return ConvertOp::create(builder, attention.getLoc(), type, value);
      };
      for (OpOperand &operand : attention->getOpOperands())
        if (getElementTypeOrSelf(operand.get()) == element)
          operand.set(converted(operand.get(), builder.getF32Type()));
      Value result = attention.getResult();
      result.setType(cast<RankedTensorType>(result.getType()).clone(builder.getF32Type()));
      builder.setInsertionPointAfter(attention);
      Value narrow = converted(result, element);
      result.replaceAllUsesExcept(narrow, narrow.getDefiningOp());
      ++numWidened;
    });
  }
};

} // namespace
