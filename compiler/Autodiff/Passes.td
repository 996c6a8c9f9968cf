// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The passes that make a program for training of a graph, in pipeline order.
#ifndef WEFT_AUTODIFF_PASSES_TD
#define WEFT_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

def Differentiate : Pass<"weft-differentiate", "::mlir::ModuleOp"> {
  let summary = "Extend @main by the gradients of its results";
  let description = [{
    One reverse walk over @main. It gets an argument `gradient i` for each of `results`, the
    cotangent of that result, and a result for each of `wrt`: the gradient of that argument, zero
    where nothing reaches it. Gradients and cotangents are row-major. Values that no gradient
    passes have no cotangent, not one of zeros.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = weft.exp %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    // becomes with wrt=0 results=0
    func.func @main(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = weft.exp %x : tensor<4xf32>
      %1 = weft.mul %g, %0 : tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    ```

    With `alone` the results are dropped, and what is left is a graph like any other: its
    derivative is the second one.

    Fails, at its line, for an op on the way that has no derivative.
  }];
  let options = [
    ListOption<"wrt", "wrt", "int64_t", "arguments whose gradients are wanted">,
    ListOption<"of", "results", "int64_t", "results that have cotangents">,
    Option<"alone", "alone", "bool", "false",
           "give the gradients alone, by a program that can be differentiated again">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def FormStep : Pass<"weft-form-step", "::mlir::ModuleOp"> {
  let summary = "Close a differentiated @main into a training step";
  let description = [{
    The last arguments of the program, one for each gradient, stand for the gradients. They are
    replaced by the gradients themselves, so that what an optimizer computes from them becomes a
    part of @main. The cotangents become constant ones, and the gradients are no longer results.

    ```mlir
    func.func @main(%p: tensor<4xf32>, %d: tensor<4xf32>, %g: tensor<f32>)
        -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>) {
      ...
      %new = weft.sub %p, %d : tensor<4xf32>
      ...
      return %loss, %new, %gradient : tensor<f32>, tensor<4xf32>, tensor<4xf32>
    }
    // becomes
    func.func @main(%p: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
      ...
      %new = weft.sub %p, %gradient : tensor<4xf32>
      return %loss, %new : tensor<f32>, tensor<4xf32>
    }
    ```

    Fails where @main is not differentiated, or an argument has another type than its gradient.
  }];
  let dependentDialects = ["::weft::WeftDialect"];
}

def Partition : Pass<"weft-partition", "::mlir::ModuleOp"> {
  let summary = "Cut a differentiated @main into @forward and @backward";
  let description = [{
    Makes entries of the roles `forward` and `backward` from the one of the role `main`.
    `@forward` takes the arguments and gives the results, followed by those of its values that the
    backward reads. `@backward` takes what it reads, in this order: arguments (`input i`), results
    (`result i`), saved values (`saved i`), cotangents (`gradient i`), and gives the gradients.
    What is saved and what is computed again is a minimal cut between the values that exist anyway
    and those that the backward reads. Saving a value costs its bytes; computing it again costs the
    bytes that could be moved in the same time. Arguments that a derivative reads are free. Other
    arguments may have changed before the backward runs, so that a copy is saved if the backward
    needs one, such as the bias of a norm before an activation.

    With a budget, recomputing becomes cheaper until the saved bytes are within it, down to nothing.
    Where results are `given`, @forward is a program that has run already: the backward uses these
    results and saves nothing else where it can do without.

    Declines nothing; fails where @main is not differentiated.
  }];
  let options = [
    Option<"half", "half", "::weft::TrainingHalf", "::weft::TrainingHalf::Both",
           "which half is kept, as @main; or both",
           [{::llvm::cl::values(clEnumValN(::weft::TrainingHalf::Both, "both", ""),
                                clEnumValN(::weft::TrainingHalf::Forward, "forward", ""),
                                clEnumValN(::weft::TrainingHalf::Backward, "backward", ""))}]>,
    Option<"budget", "budget", "double", "-1.0",
           "share of all that could be saved which may be, in bytes; no limit if negative">,
    ListOption<"given", "given", "int64_t", "the results that the backward can read, if no others">
  ];
  let statistics = [
    Statistic<"numSaved", "num-saved", "values saved">,
    Statistic<"savedBytes", "saved-bytes", "bytes of the saved values">,
    Statistic<"numRecomputed", "num-recomputed", "ops computed again">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

def SegmentBackward : Pass<"weft-segment-backward", "::mlir::ModuleOp"> {
  let summary = "Keep one of the segments in which a backward gives its gradients";
  let description = [{
    @main is a backward. Its gradients come in segments, so that those of the first can be sent to
    other processes while the others are computed. An op belongs to the first segment that needs
    it, or that gives the gradient of an input that it reads. The segment takes what it reads of
    the arguments of @main, under their names, and of the values that earlier ones have computed
    (`carried i`); it gives its gradients, then those of its values that later ones read, which are
    numbered segment by segment.

    ```mlir
    func.func @main(%w: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = weft.mul %g, %w : tensor<4xf32>
      %1 = weft.exp %0 : tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    // becomes with groups=0,1 segment=1
    func.func @main(%carried: tensor<4xf32>) -> tensor<4xf32> {
      %1 = weft.exp %carried : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```

    Fails where @main has another number of results than `groups`, or `wrt` if it is given.
  }];
  let options = [
    ListOption<"groups", "groups", "int64_t", "the segment of each gradient">,
    ListOption<"wrt", "wrt", "int64_t", "for each gradient, the number of its input">,
    Option<"segment", "segment", "int64_t", "0", "number of the segment that is kept">
  ];
  let dependentDialects = ["::weft::WeftDialect"];
}

#endif
