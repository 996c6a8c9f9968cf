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

def FuseKernels : Pass<"weft-fuse-kernels", "::mlir::ModuleOp"> {
  let summary = "Group the ops of every entry into kernels";
  let description = [{
    Outlines everything that computes from functions with `weft.entry` into private
    functions marked `weft.kernel`:

    * `"nest"`: ops of one domain G x R, all reductions along R; or one window or scan with
      its elementwise epilogue;
    * `"contraction"`: one sum of products with its elementwise epilogue;
    * `"attention"`: one attention with its mask and the views around it.

    Decided from the loops of the ops (`IterationStructure`). Views, masks and arithmetic on
    few elements are repeated by every kernel that reads them; all else is computed once.

    ```mlir
    %0 = weft.dot_general %x, %w ...
    %1 = weft.broadcast_in_dim %b ...
    %2 = weft.add %0, %1 : tensor<128x64xf32>
    // becomes
    %0 = call @dot_general_0(%x, %w, %b)
    ```

    Declines to join ops that reduce different axes, whose values do not all lie on the
    grid, whose union would wait for itself through another op, producers of the operands
    of a contraction, window or attention (except views), and relayouts into a
    contraction. `weft.torch_fallback` and `weft.assert` stay in the entry in their order.
  }];
  let statistics = [Statistic<"numKernels", "num-kernels", "kernels outlined">];
}

def DedupeKernels : Pass<"weft-dedupe-kernels", "::mlir::ModuleOp"> {
  let summary = "Make kernels that differ in names and locations only one function";
  let description = [{
    Layers of one shape call the same kernel. Calls keep their own locations.

    ```mlir
    %0 = call @dot_general_0(%x, %w0)
    %1 = call @dot_general_1(%0, %w1)
    // becomes
    %0 = call @dot_general_0(%x, %w0)
    %1 = call @dot_general_0(%0, %w1)
    ```

    Keeps kernels apart whose attributes, types or order of ops differ.
  }];
  let statistics = [Statistic<"numRemoved", "num-removed", "kernels that were another's copy">];
}

#endif
