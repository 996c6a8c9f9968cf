// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes that change what the graph computes with, before it has layouts, in pipeline order.
#ifndef WEFT_TRANSFORMS_REWRITEPASSES_TD
#define WEFT_TRANSFORMS_REWRITEPASSES_TD

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

def DropSlopes : Pass<"weft-drop-slopes", "::mlir::ModuleOp"> {
  let summary = "Leave out what only derivatives read";
  let description = [{
    No derivative follows any more. A value whose derivative is given takes the place of the op that
    gives it, and nothing says any longer what is a constant to derivatives or what they are at a
    kink.

    ```mlir
    %1 = weft.with_slopes %0 along %x by %s dims [] : ...
    // becomes
    %0
    ```
  }];
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

def JoinProducts : Pass<"weft-join-products", "::mlir::func::FuncOp"> {
  let summary = "Make one contraction of several short ones";
  let description = [{
    Steps that are not rolled into a scan, and layers that share a weight, leave many contractions
    that spend more on what they share than on their own operands. Those of a sum, as the gradient
    of such a weight is, become one contraction of operands that lie behind one another along a
    contracted dim, so that the sum is written once; so do reductions of the same values, as the
    gradient of a bias is. Those of one rhs become one contraction whose rows lie behind one
    another, so that the rhs is read once.

    ```mlir
    %0 = weft.dot_general %g0, %h0 ... contract [0] x [0] : tensor<4x16xf32>, tensor<4x8xf32> ...
    %1 = weft.dot_general %g1, %h1 ... contract [0] x [0] : tensor<4x16xf32>, tensor<4x8xf32> ...
    %dw = weft.add %0, %1
    // becomes
    %g = weft.concat %g0, %g1 dim 0
    %h = weft.concat %h0, %h1 dim 0
    %dw = weft.dot_general %g, %h ... contract [0] x [0]
    ```

    Declines batched contractions, partial sums that are read, types that a partial sum rounds to
    (f16 and bf16), products that depend on one another, and those where joining the operands
    moves more than it saves.
  }];
  let options = [
    Option<"l2Bytes", "l2-bytes", "int64_t", "1 << 20", "size of the second-level cache">
  ];
  let statistics = [
    Statistic<"numJoined", "num-joined", "contractions and reductions that became part of another">
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

def UnrollLoops : Pass<"weft-unroll-loops", "::mlir::ModuleOp"> {
  let summary = "Run several small steps of a loop as one";
  let description = [{
    The function of a step of elementwise ops alone becomes one of several steps, which fusion
    makes one kernel: its states stay in registers between them, and there is one barrier for
    all. What is left at the end is run step by step.

    ```mlir
    %0 = weft.loop @step 18 reverse false carry(%h) over(%xs) with() ...
    // becomes
    %0 = weft.loop @step_0 18 by 8 reverse false carry(%h) over(%xs) with() rest @step with() ...
    ```

    The factor is at most 8, and divides the number of steps where one from 4 on does. Declines
    loops of fewer steps than 2, steps of many ops or of large tensors, which gain nothing,
    outputs that no state is computed from, and steps with anything but elementwise ops and
    views, which have kernels of their own anyway.
  }];
  let options = [
    Option<"factor", "factor", "int64_t", "0", "steps that become one, in all loops; 0: chosen">
  ];
  let statistics = [
    Statistic<"numUnrolled", "num-unrolled", "loops that were unrolled">
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

#endif
