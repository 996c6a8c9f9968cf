// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes over the graph dialect, in pipeline order.
#ifndef WEFT_TRANSFORMS_PASSES_TD
#define WEFT_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DecomposeComposites : Pass<"weft-decompose-composites", "::mlir::func::FuncOp"> {
  let summary = "Replace composite ops by the primitive ops they mean";
  let description = [{
    Asks each `CompositeOpInterface` op for its decomposition, so that fusion sees its
    reductions and elementwise ops. Shapes and layouts stay; bf16 and f16 are computed in
    f32.

    ```mlir
    %1 = weft.silu %0 : tensor<8xf32>
    // becomes
    %s = weft.sigmoid %0 : tensor<8xf32>
    %1 = weft.mul %0, %s : tensor<8xf32>
    ```

    Leaves `weft.attention` whole unless asked: it has a kernel of its own.
  }];
  let options = [Option<"attention", "attention", "bool", "false", "decompose attention too">];
  let statistics = [Statistic<"numDecomposed", "num-decomposed", "composites decomposed">];
}

#endif
