// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes that choose precision and layouts, and what is computed once, in pipeline order.
#ifndef WEFT_TRANSFORMS_LAYOUTPASSES_TD
#define WEFT_TRANSFORMS_LAYOUTPASSES_TD

include "mlir/Pass/PassBase.td"

def LowerPrecision : Pass<"weft-lower-precision", "::mlir::func::FuncOp"> {
  let summary = "Let contractions of f32 take their operands in bf16";
  let description = [{
    The operands of every f32 `weft.dot_general`, `weft.multi_dot` and `weft.conv` are
    rounded to bf16; the sums, and so everything else, stay f32. A value is converted once
    for all that read it, and what depends on weights alone is left to hoist-bind.

    ```mlir
    %0 = weft.dot_general %x, %w ... : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
    // becomes
    %w1 = weft.convert %w : tensor<16x8xf32> -> tensor<16x8xbf16>
    %x1 = weft.convert %x : tensor<4x8xf32> -> tensor<4x8xbf16>
    %0 = weft.dot_general %x1, %w1 ... : tensor<4x8xbf16>, tensor<16x8xbf16> -> tensor<4x16xf32>
    ```

    Declines contractions of other types, half precision among them, and attention. In the
    pipeline when its option `bf16` is set, behind the folding of batch norms: their factors
    are rounded as part of the weights.
  }];
  let statistics = [
    Statistic<"numContractions", "num-contractions", "contractions that now read bf16">
  ];
}

def UseWinograd : Pass<"weft-use-winograd", "::mlir::func::FuncOp"> {
  let summary = "Compute convolutions with 3x3 windows by Winograd's F(2x2, 3x3)";
  let description = [{
    A `weft.conv` of f32 with 3x3 windows and stride 1 becomes a `weft.pad` and a
    `weft.winograd_conv`, whose weight is a contraction of the conv's with a constant, for
    hoist-bind to prepare.

    ```mlir
    %0 = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] ... -> tensor<1x64x14x14xf32>
    // becomes
    %p = weft.pad %x, %zero low [0, 0, 1, 1] high [0, 0, 1, 1] ... -> tensor<1x32x16x16xf32>
    %d = weft.dot_general %g, %w9 batch [] x [] contract [1] x [2] : tensor<16x9xf32>, ...
    %u = weft.transpose %d perm [0, 2, 1] : ... -> tensor<16x32x64xf32>
    %0 = weft.winograd_conv %p, %u, %w : ... -> tensor<1x64x14x14xf32>
    ```

    Declines groups, dilation, channels that are not whole vectors, odd sizes of a few pixels,
    weights that are computed from inputs, and images so small, or so deep for the
    second-level cache, that reading 16 numbers for each 9 of the weight costs more than the
    multiplications saved. docs/decisions/0016-winograd.md has the errors.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", "16", "f32 lanes of one vector register">,
    Option<"l2Bytes", "l2-bytes", "int64_t", "1 << 20", "size of the second-level cache">
  ];
  let statistics = [
    Statistic<"numConvs", "num-convs", "convolutions that became Winograd's">
  ];
}

def ChooseLayouts : Pass<"weft-choose-layouts", "::mlir::func::FuncOp"> {
  let summary = "Decide where the elements of every tensor lie";
  let description = [{
    Linear layers read their weights where they lie, but for those that are copied anyway, as
    they are converted: the steps of their sums lie side by side. Activations are kept
    feature-major in blocks of tokens, and everything between two linear layers that can
    work in that layout does. Where the padding of such blocks and the relayouts at their ends cost
    more than a copy of the weights, these are packed into blocks of columns instead and
    activations stay row-major (docs/decisions/0124-packing-is-a-comparison-of-costs.md).
    Convolutions work channels-last with weights in blocks of
    output channels. A batch of products whose operands both lie along the sum has its right side
    turned, where it has enough rows. Arguments and results of the function keep their layouts;
    `weft.relayout` marks every place where elements move.

    ```mlir
    %0 = weft.dot_general %x, %w ... : tensor<2x128x768xf32>, ...
    // becomes
    %t = weft.relayout %x : ... -> tensor<2x128x768xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
    %0 = weft.dot_general %t, %w ... : tensor<2x128x768xf32, #weft.layout<[0, 1, 2], tile 1 by 64>>
    ```

    Afterwards the operands and results of an elementwise op or a composite that have its
    full shape share one layout; attention works on blocks of tokens throughout or on
    row-major tensors throughout; the padding of a convolution is a `weft.pad`.

    Declines, that is keeps row-major: fewer tokens than lanes, a layer of bf16 apart from others
    whose rows and columns the matrix unit reads as they lie, contractions of two activations,
    grouped convolutions, convolutions over one or three spatial dims.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", "16", "f32 lanes of one vector register">,
    Option<"registers", "registers", "int64_t", "32", "number of vector registers">,
    Option<"rowMajor", "row-major", "bool", "false", "keep all tensors row-major">,
    Option<"l2Bytes", "l2-bytes", "int64_t", "1 << 20", "size of the second-level cache">,
    Option<"matrixUnit", "matrix-unit", "bool", "false", "the target multiplies tiles of bf16">
  ];
  let statistics = [
    Statistic<"numRelayouts", "num-relayouts", "relayouts inserted">
  ];
}

def HoistInvariants : Pass<"weft-hoist-invariants", "::mlir::ModuleOp"> {
  let summary = "Compute ahead of a loop what its steps compute alike";
  let description = [{
    Packed copies of invariants, and arithmetic on invariants alone, move ahead of the loop,
    and the step is given their results. What depends on weights there goes on to @bind.

    ```mlir
    func.func private @step(%h: tensor<8x64xf32>, %w: tensor<64x64xf32>) ... {
      %0 = weft.relayout %w : tensor<64x64xf32> -> tensor<64x64xf32, #packed>
    // becomes
    %0 = weft.relayout %w : tensor<64x64xf32> -> tensor<64x64xf32, #packed>
    %1 = weft.loop @step 100 reverse false carry(%h) over() with(%0) ...
    ```

    Declines what kernels compute on the fly: broadcasts, slices, reshapes, constants.
  }];
  let statistics = [
    Statistic<"numHoisted", "num-hoisted", "values that are computed ahead of a loop">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def HoistBind : Pass<"weft-hoist-bind", "::mlir::ModuleOp"> {
  let summary = "Prepare weights once, in an entry of their own";
  let description = [{
    What depends on weights, buffers and constants alone moves into the entry `@bind`, and
    its result becomes a trailing argument of `@main` of kind "bound", if `@main` reads it
    and it is

    1. packing: a relayout into tiles, or of a contraction's weight;
    2. a conversion of a weight or a buffer that a contraction reads; or
    3. arithmetic that depends on a weight or a buffer.

    Views and other ops that kernels repeat on the fly (broadcasts, slices, transposes,
    converts, gathers, ...) stay with their reader; what stands before them moves.

    ```mlir
    func.func @main(%x: ..., %w: ... {weft.kind = "weight"}) attributes {weft.entry = #weft.entry<main>} {
      %p = weft.relayout %w : tensor<64x3x7x7xf32> -> tensor<64x3x7x7xf32, #packed>
    // becomes
    func.func @bind(%w: ... {weft.kind = "weight"}) -> tensor<64x3x7x7xf32, #packed> attributes {weft.entry = #weft.entry<bind>}
    func.func @main(%x: ..., %w: ..., %p: ... {weft.kind = "bound"}) attributes {weft.entry = #weft.entry<main>}
    ```

    Declines what depends on an input, arithmetic on constants alone (loops are cheaper than
    memory), and arithmetic whose result `@main` returns, directly or through views: that is
    computed anew at each call, since a tensor of `@bind` would be shared among callers.
  }];
  let statistics = [
    Statistic<"numBound", "num-bound", "values prepared by the bind entry">
  ];
}

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

    Leaves `weft.attention` whole unless asked: it has a kernel of its own, which has queries in
    the lanes. Few of them, as in a decoding step, leave most lanes empty.
  }];
  let options = [
    Option<"queries", "queries", "int64_t", "0", "decompose attention of at most so many queries">
  ];
  let statistics = [Statistic<"numDecomposed", "num-decomposed", "composites decomposed">];
}

def SplitReductions : Pass<"weft-split-reductions", "::mlir::func::FuncOp"> {
  let summary = "Reduce much to a few numbers in two steps, the first of them parallel";
  let description = [{
    A reduction of 65,536 elements or more to fewer than 8 becomes one to 16 to 1024 parts
    and one of these, so that threads share it.

    ```mlir
    %s = weft.reduce <sum> %x dims [0] : tensor<1048576xf32> -> tensor<f32>
    // becomes
    %c = weft.reshape %x : tensor<1048576xf32> -> tensor<64x16384xf32>
    %p = weft.reduce <sum> %c dims [1] : tensor<64x16384xf32> -> tensor<64xf32>
    %s = weft.reduce <sum> %p dims [0] : tensor<64xf32> -> tensor<f32>
    ```

    Declines layouts, half precision (whose parts would be rounded) and sizes without a
    suitable divisor.
  }];
  let statistics = [Statistic<"numSplit", "num-split", "reductions split in two">];
}

#endif
