// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes over the graph dialect, in pipeline order.
#ifndef WEFT_TRANSFORMS_PASSES_TD
#define WEFT_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def InlineCalls : Pass<"weft-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Put bodies in place of calls";
  let description = [{
    A graph from a user's passes may have functions beside its entries, whose bodies take the
    place of their calls. Those that nothing calls then are erased.

    ```mlir
    %0 = call @fused_dot_add0(%x, %w, %b) : ...
    // becomes
    %0 = weft.dot_general %x, %w ...
    %1 = weft.add %0, %b ...
    ```

    Declines calls of kernels and of functions marked `weft.primitive`, which fusion takes as units;
    calls within these are inlined all the same. Fails on functions that call themselves.
  }];
  let statistics = [
    Statistic<"numInlined", "num-inlined", "calls that were inlined">
  ];
  let options = [
    Option<"primitives", "primitives", "bool", "false",
           "also of primitive functions, as for derivatives, which know no calls">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def FoldEmpty : Pass<"weft-fold-empty", "::mlir::func::FuncOp"> {
  let summary = "Replace what has no elements, or sums none, by constants";
  let description = [{
    A result without elements becomes a constant, and so does a contraction or an attention
    over nothing, which is zero. Attention of vectors without elements is decomposed: its
    weights are all alike. What comes behind may divide by the size of any dim of a
    contraction, an attention or a sort.

    ```mlir
    %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
      : tensor<4x0xf32>, tensor<16x0xf32> -> tensor<4x16xf32>
    // becomes
    %0 = weft.constant dense<0.0> : tensor<4x16xf32>
    ```

    Declines reductions, joins and updates that read tensors without elements but have some,
    and ops with effects.
  }];
  let statistics = [
    Statistic<"numFolded", "num-folded", "results that became constants">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def RollLoops : Pass<"weft-roll-loops", "::mlir::func::FuncOp"> {
  let summary = "Make scans of loops that were unrolled when the program was traced";
  let description = [{
    Finds ops that repeat, and makes a scan of them where each operand of a step comes from the
    same step, from one of the last before it, from outside and is the same in all steps, or is
    a part of a tensor that moves along one dim, or a constant. Numbers that are drawn for each
    step, and an input for each, are gathered ahead of the scan. Results of all steps that a
    concat stacks become stacked outputs, last values become last states; where single steps'
    results are read, they are rows of a stacked output. Asserts of the steps become one. Of
    steps that differ from the others at either end, the others become the scan.

    Ahead of that, tensors that are filled row by row become concats of the rows.

    ```mlir
    %x0 = weft.slice %xs [0, 0] to [1, 8] by [1, 1] ...
    %h1 = weft.add %h0, %x0
    %x1 = weft.slice %xs [1, 0] to [2, 8] by [1, 1] ...
    %h2 = weft.add %h1, %x1
    // becomes
    %h = weft.scan 2 carry(%s = %h0 : tensor<1x8xf32>) over(%x = %rows : tensor<2x1x8xf32>) ...
    ```

    Declines where results of varying steps are read, where weights differ from step to step,
    and few steps of elementwise ops alone, which are fused with each other.
  }];
  let options = [
    Option<"fewestSteps", "fewest-steps", "int64_t", "8", "steps that are rolled at least">
  ];
  let statistics = [
    Statistic<"numRolled", "num-rolled", "scans made">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def BatchSteps : Pass<"weft-batch-steps", "::mlir::func::FuncOp"> {
  let summary = "Compute the contractions of a scan that depend on no state for all steps at once";
  let description = [{
    A contraction of an element of a sequence with an invariant becomes one of the whole
    sequence, ahead of the scan, with what it needs, and with the elementwise ops that alone
    read its result. The scan reads what is left as a sequence.

    ```mlir
    %h = weft.scan 100 carry(...) over(%x = %xs : tensor<100x4x8xf32>) with(%w = %weight : ...) {
      %0 = weft.dot_general %x, %w ... : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
    // becomes
    %0 = weft.dot_general %xs, %weight ... -> tensor<100x4x16xf32>
    %h = weft.scan 100 carry(...) over(%x = %0 : tensor<100x4x16xf32>) {
    ```

    Declines contractions that depend on a state, and elementwise ops by themselves, which
    cost less in the step than a sequence of their results.
  }];
  let statistics = [
    Statistic<"numBatched", "num-batched", "contractions that left a scan">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def SinkSums : Pass<"weft-sink-sums", "::mlir::func::FuncOp"> {
  let summary = "Compute sums over the steps of a scan behind it";
  let description = [{
    A state that each step adds a contraction or a sum to, and nothing else reads, is one
    contraction or sum over all steps: the gradients of weights leave the loop, which stacks
    their operands.

    ```mlir
    %dw = weft.scan 100 carry(%sum = %zero : tensor<16x8xf32>) ... {
      %0 = weft.dot_general %g, %h ... contract [0] x [0] : ... -> tensor<16x8xf32>
      %1 = weft.add %sum, %0
    // becomes
    %gs, %hs = weft.scan 100 ...
    %dw = weft.dot_general %gs, %hs ... contract [0, 1] x [0, 1]
    ```

    Declines sums that a step reads, and of anything else.
  }];
  let statistics = [
    Statistic<"numSunk", "num-sunk", "states that became sums over all steps">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def JoinPads : Pass<"weft-join-pads", "::mlir::func::FuncOp"> {
  let summary = "Make concats of sums of parts with zeros around them";
  let description = [{
    The gradient of what a step cuts into gates is a sum of their gradients, each with zeros in
    the place of the others. Parts that do not overlap stand side by side instead; what they
    leave out is zero.

    ```mlir
    %a = weft.pad %x, %zero low [0, 0] high [0, 4] ...
    %b = weft.pad %y, %zero low [0, 4] high [0, 0] ...
    %s = weft.add %a, %b
    // becomes
    %s = weft.concat %x, %y dim 1 ...
    ```

    Declines where parts overlap, are padded along several dims, or partial sums are read.
  }];
  let dependentDialects = ["::weft::WeftDialect"];
}

def OutlineScans : Pass<"weft-outline-scans", "::mlir::ModuleOp"> {
  let summary = "Make functions of the bodies of scans";
  let description = [{
    The body becomes a private function marked `weft.step`, so that all passes over functions
    see a step as they see a program; the scan becomes a `weft.loop` over it. Invariants are
    marked as constants, which are prepared as weights are.

    ```mlir
    %0 = weft.scan 100 carry(%h = %h0 : tensor<8xf32>) -> (tensor<8xf32>) { ... }
    // becomes
    %0 = weft.loop @step 100 reverse false carry(%h0) over() with()
      : (tensor<8xf32>) -> tensor<8xf32>
    ```

    Never declines.
  }];
  let statistics = [
    Statistic<"numOutlined", "num-outlined", "scans that became loops">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def Simplify : Pass<"weft-simplify", "::mlir::func::FuncOp"> {
  let summary = "Take copies out of the way of contractions";
  let description = [{
    Canonicalisation beyond what single ops fold to:

    * a reshape that merges leading dims (tokens) sinks below contractions of the last dim
      and below elementwise ops, until it meets the reshape that splits them again;
    * tokens that fill a vector only together (64 sequences of one token, rows of a small
      image) are merged ahead of a contraction, and reshapes that split them sink instead;
    * a transpose of a contraction's operand becomes a choice of dims, and an rhs that is
      an argument is read in the layout that it was given in;
    * a broadcast of a reshape that only adds unit dims broadcasts the original.

    ```mlir
    %0 = weft.reshape %x : tensor<2x64x768xf32> -> tensor<128x768xf32>
    %1 = weft.dot_general %0, %w ...   : -> tensor<128x3072xf32>
    %2 = weft.reshape %1 : tensor<128x3072xf32> -> tensor<2x64x3072xf32>
    // becomes
    %2 = weft.dot_general %x, %w ...   : -> tensor<2x64x3072xf32>
    ```

    Declines a transpose that would reorder the free dims of a contraction, and elementwise
    ops whose other operands cannot follow the reshape.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", "16", "f32 lanes of one vector register">
  ];
}

def FormAttention : Pass<"weft-form-attention", "::mlir::func::FuncOp"> {
  let summary = "Make one op of an attention that is written out";
  let description = [{
    A softmax of scores, which are a contraction of queries and keys, scaled and masked, whose
    result is contracted with values, becomes a `weft.attention`, whose scores need not go to
    memory. Masks are added, or choose the score or a number; reshapes may regroup batch dims
    between.

    ```mlir
    %s = weft.dot_general %q, %k ...
    %t = weft.mul %s, %scale
    %u = weft.add %t, %mask
    %w = weft.softmax %u dim 3
    %y = weft.dot_general %w, %v ...
    // becomes
    %y = weft.attention %q, %k, %v mask %mask causal false scale 0.125 {hiddenScore = ...} ...
    ```

    Declines where somebody else reads the scores or the weights, as gradients do, a mask that is
    scaled or of both kinds, and half precision, where eager execution rounds the scores.
  }];
  let statistics = [
    Statistic<"numFormed", "num-formed", "attention ops made">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def MergeMatmuls : Pass<"weft-merge-matmuls", "::mlir::func::FuncOp"> {
  let summary = "Walk several weights against one activation together";
  let description = [{
    Contractions of one lhs over the same dims with different function arguments become
    one `weft.multi_dot`, so that the lhs is read once. The weights stay where they lie.

    ```mlir
    %q = weft.dot_general %x, %wq ...
    %k = weft.dot_general %x, %wk ...
    // becomes
    %q, %k = weft.multi_dot %x with %wq, %wk ...
    ```

    Declines batched contractions, an rhs that is computed (the lhs of the first
    contraction might be needed for it) and rhs that are not matrices.
  }];
  let statistics = [
    Statistic<"numMerged", "num-merged", "contractions that became part of a multi_dot">
  ];
}

def FoldBatchNorm : Pass<"weft-fold-batch-norm", "::mlir::func::FuncOp"> {
  let summary = "Take batch norms with given statistics into convolutions";
  let description = [{
    A `weft.batch_norm` of f32 or f64 whose statistics, weight and bias depend on no input
    becomes a factor and a summand for each channel, computed in f64 and rounded once. The
    factor goes into the weight of the convolution ahead, where nobody else reads that.

    ```mlir
    %0 = weft.conv %x, %w ...
    %1 = weft.batch_norm %0 mean %m variance %v ...
    // becomes
    %s = ... 1 / sqrt(%v + eps)
    %w1 = weft.mul %w, %s     // in f64
    %0 = weft.conv %x, %w1 ...
    %1 = weft.add %0, ...     // - %m * %s
    ```

    Declines bf16 and f16, and statistics that are computed from inputs.
  }];
  let statistics = [
    Statistic<"numConvs", "num-convs", "norms that a convolution took in">,
    Statistic<"numScales", "num-scales", "norms that became a factor and a summand">
  ];
}

def MergeConvs : Pass<"weft-merge-convs", "::mlir::func::FuncOp"> {
  let summary = "Compute sums of convolutions of one input as one convolution";
  let description = [{
    Summands that are convolutions of one input with weights that depend on no input become one,
    whose weight is the sum, computed in f64 and rounded once. A window may lie within another,
    as 1x1 in 3x3; an input with a factor for each channel is a window of one element to a
    convolution that has one weight for each channel. What is added for each channel becomes one
    summand.

    ```mlir
    %0 = weft.conv %x, %w0 ...          // 3x3, pad 1
    %1 = weft.conv %x, %w1 ...          // 1x1
    %2 = weft.add %0, %1
    // becomes
    %3 = weft.pad %w1, %zero low [0, 0, 1, 1] high [0, 0, 1, 1]
    %w = weft.add %w0, %3               // in f64
    %2 = weft.conv %x, %w ...
    ```

    Behind the folding of batch norms, which leaves such sums. Declines bf16 and f16, convolutions
    that somebody else reads, other strides and groups, and windows that overlap in part.
  }];
  let statistics = [
    Statistic<"numSums", "num-sums", "sums in which convolutions became one">
  ];
}

def WidenAttention : Pass<"weft-widen-attention", "::mlir::func::FuncOp"> {
  let summary = "Let attention of half precision compute in f32";
  let description = [{
    Query, key, value and a mask that is added are converted to f32, the result back. The
    attention kernel computes in the type of its operands, and the sums want f32.

    ```mlir
    %0 = weft.attention %q, %k, %v ... : tensor<2x4x64xbf16>, ... -> tensor<2x4x64xbf16>
    // becomes
    %q1 = weft.convert %q : tensor<2x4x64xbf16> -> tensor<2x4x64xf32>
    ...
    %1 = weft.attention %q1, %k1, %v1 ... : tensor<2x4x64xf32>, ... -> tensor<2x4x64xf32>
    %0 = weft.convert %1 : tensor<2x4x64xf32> -> tensor<2x4x64xbf16>
    ```

    Declines attention of f32 and f64.
  }];
  let statistics = [
    Statistic<"numWidened", "num-widened", "attention ops that now compute in f32">
  ];
}

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
    work in that layout does. Where all weights of a function without attention are small,
    they are packed into blocks of columns instead and activations stay row-major.
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

    Declines, that is keeps row-major: fewer tokens than lanes, contractions of two
    activations, grouped convolutions, convolutions over one or three spatial dims.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", "16", "f32 lanes of one vector register">,
    Option<"registers", "registers", "int64_t", "32", "number of vector registers">,
    Option<"rowMajor", "row-major", "bool", "false", "keep all tensors row-major">
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
    func.func @main(%x: ..., %w: ... {weft.kind = "weight"}) attributes {weft.entry} {
      %p = weft.relayout %w : tensor<64x3x7x7xf32> -> tensor<64x3x7x7xf32, #packed>
    // becomes
    func.func @bind(%w: ... {weft.kind = "weight"}) -> tensor<64x3x7x7xf32, #packed> attributes {weft.entry}
    func.func @main(%x: ..., %w: ..., %p: ... {weft.kind = "bound"}) attributes {weft.entry}
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
    of a contraction, window or attention (except views), and relayouts into a
    contraction. `weft.torch_fallback` and `weft.assert` stay in the entry in their order.
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

    * `weft.bound = [1, symbol, largest]`: rows of all results, from the size of the symbol on;
    * `[0, symbol, largest]`: the sums of contractions for these rows alone, as the graph fills in
      what else it reads there;
    * of an attention `[queries, batch, keys]`: of each the symbol, or -1.

    Padding is followed from the arguments (`weft.bounded`) along exact loops. Calls of one kernel
    that differ leave it as it is, as do all other kernels.

    ```mlir
    %0 = call @dot_general_0(%x, %w)
    // becomes
    %0 = call @dot_general_0(%x, %w, %sizes)
    ```
  }];
  let statistics = [Statistic<"numBound", "num-bound", "kernels that leave out padding">];
}

#endif
