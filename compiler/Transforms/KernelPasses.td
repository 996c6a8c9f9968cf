// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes that group ops into kernels, in pipeline order.
#ifndef WEFT_TRANSFORMS_KERNELPASSES_TD
#define WEFT_TRANSFORMS_KERNELPASSES_TD

include "mlir/Pass/PassBase.td"

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

    The ops of a call of a function marked `weft.primitive` become kernels without any others, under
    the function's name: fusion completes what the user began. An op that does not join the kernel
    of one whose result it reads is a missed remark, with the reason.

    ```mlir
    %0 = weft.dot_general %x, %w ...
    %1 = weft.broadcast_in_dim %b ...
    %2 = weft.add %0, %1 : tensor<128x64xf32>
    // becomes
    %0 = call @dot_general_0(%x, %w, %b)
    ```

    Declines to join ops that reduce different axes, whose values do not all lie on the
    grid, whose union would wait for itself through another op, producers of the operands
    of a contraction, window or attention (except views), relayouts into a contraction, and
    what reads a value that is compared with elements of itself, unless elementwise.
    `weft.torch_fallback` and `weft.assert` stay in the entry in their order.
  }];
  let options = [
    Option<"fuse", "fuse", "bool", "true", "join computations; otherwise each is a kernel">
  ];
  let statistics = [Statistic<"numKernels", "num-kernels", "kernels outlined">];
}

def DedupeKernels : Pass<"weft-dedupe-kernels", "::mlir::ModuleOp"> {
  let summary = "Make kernels that differ in names, locations and where slices begin one function";
  let description = [{
    Layers of one shape call the same kernel. Calls keep their own locations. So do steps
    over an operand that kernels read through slices alone: the slices move to its start, and
    calls advance the operand to where they began. Slices that all of them read at one place
    stay there.

    ```mlir
    %0 = call @dot_general_0(%x, %w0)
    %1 = call @dot_general_1(%0, %w1)
    // becomes
    %0 = call @dot_general_0(%x, %w0)
    %1 = call @dot_general_0(%0, %w1)
    // and
    %0 = call @elementwise_0(%rows)  // reads row 0
    %1 = call @elementwise_1(%rows)  // reads row 1
    // becomes
    %0 = call @elementwise_0(%rows)
    %row = weft.advance %rows by 768 : tensor<32x768xf32>
    %1 = call @elementwise_0(%row)
    ```

    Keeps kernels apart whose attributes, types or order of ops differ.
  }];
  let statistics = [Statistic<"numRemoved", "num-removed", "kernels that were another's copy">];
}

def BoundKernels : Pass<"weft-bound-kernels", "::mlir::ModuleOp"> {
  let summary = "Tell kernels of a program for a range of sizes which rows are padding";
  let description = [{
    An entry with `weft.bounds` on an argument is compiled for the largest sizes; that argument holds
    those of the call, by symbol. Kernels whose rows are padded get it as their last operand, and an
    attribute that says what they may leave out:

    * `weft.bound = [1, symbol, most, place]`: rows of all results, from the size of the symbol
      on, along the dim of that place in memory; with `times` behind it, from that multiple on;
    * `[0, symbol, largest, place]`: the sums of contractions for these rows alone, as the graph fills in
      what else it reads there;
    * of an attention `[queries, batch, keys]`: of each the symbol, or -1.

    Padding is followed from the arguments (`weft.bounded`) along exact loops. Calls of one kernel
    that differ leave it as it is, as do all other kernels. What is hidden behind the keys of an
    attention is computed for the blocks of keys that this reads.

    ```mlir
    %0 = call @dot_general_0(%x, %w)
    // becomes
    %0 = call @dot_general_0(%x, %w, %sizes)
    ```
  }];
  let statistics = [Statistic<"numBound", "num-bound", "kernels that leave out padding">];
}

#endif
