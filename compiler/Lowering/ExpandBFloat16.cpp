// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bfloat16 by integer arithmetic, as conversion instructions flush denormals, which PyTorch keeps.
// On targets without them, elements are also moved as integers: LLVM may otherwise round an element
// anew just to move it, by a call into the compiler's runtime library.
#include "compiler/Lowering/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_EXPANDBFLOAT16
#include "compiler/Lowering/Passes.h.inc"
} // namespace weft

/// Replaces each bf16 below `op` by an i16 of its bits.
static void moveAsBits(Operation *op) {
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [](BFloat16Type type) -> Type { return IntegerType::get(type.getContext(), 16); });
  replacer.addReplacement([](FloatAttr attr) -> std::optional<Attribute> {
    if (!attr.getType().isBF16())
      return std::nullopt;
    APInt bits = attr.getValue().bitcastToAPInt();
    return IntegerAttr::get(IntegerType::get(attr.getContext(), 16), bits);
  });
  replacer.addReplacement([](DenseFPElementsAttr attr) -> std::optional<Attribute> {
    if (!attr.getElementType().isBF16())
      return std::nullopt;
    return attr.bitcast(IntegerType::get(attr.getContext(), 16));
  });
  replacer.recursivelyReplaceElementsIn(op, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

namespace {

struct ExpandBFloat16 : weft::impl::ExpandBFloat16Base<ExpandBFloat16> {
  using ExpandBFloat16Base::ExpandBFloat16Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    // No other change: folding n-D vectors would scalarise accumulators.
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    if (!hasBFloat16)
      moveAsBits(getOperation());
  }
};

} // namespace
