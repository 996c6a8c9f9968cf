// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Recurrences: a step that is repeated along a sequence.
#ifndef WEFT_GRAPH_SCAN_TD
#define WEFT_GRAPH_SCAN_TD

include "compiler/Graph/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

// What the op with a region and the op with a function have in common.
class Weft_RecurrenceOp<string mnemonic, list<Trait> traits> : Weft_Op<mnemonic, traits> {
  code helpers = [{
    /// The results that are last states; the stacked outputs follow.
    ::mlir::ResultRange getFinals() { return getResults().take_front(getInits().size()); }
    ::mlir::ResultRange getStacked() { return getResults().drop_front(getInits().size()); }
    /// What the step takes, from the types of the operands. A loop's is as many as its factor.
    ::llvm::SmallVector<::mlir::Type> getStepInputs();
    /// What the step gives, from the types of the results.
    ::llvm::SmallVector<::mlir::Type> getStepResults();
  }];
}

def Weft_ScanOp : Weft_RecurrenceOp<"scan",
    [Pure, AttrSizedOperandSegments, IsolatedFromAbove,
     SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A step, repeated along sequences, that takes what the step before it gave";
  let description = [{
    For t from 0 to length - 1, or from length - 1 to 0 with reverse:
    state, outputs[t] = body(state, sequences[t], invariants), where state begins as inits.
    Results are the last state, then the stacked outputs. State: any shapes, element types
    kept; sequences and stacked outputs: (length, d...), of which a step sees (d...);
    invariants: what every step sees whole. The body takes state, elements and invariants, in
    this order, and yields the next state and the outputs of the step.

    * scan_c1: length is at least 0, and the first dim of each sequence and stacked output.
    * scan_c2: the body takes the state, one element of each sequence, and the invariants.
    * scan_c3: the body yields the next state, of the types of inits, and the outputs of a step.
    * scan_c4: the ops of the body have no effects.

    Created by the frontend (recurrent modules) and by weft-roll-loops; becomes a loop over a
    function by weft-outline-scans.

    ```mlir
    %last, %all = weft.scan 100 carry(%h = %h0 : tensor<4x8xf32>)
        over(%x = %xs : tensor<100x4x8xf32>) with(%b = %bias : tensor<4x8xf32>)
        -> (tensor<4x8xf32>, tensor<100x4x8xf32>) {
      %0 = weft.add %h, %x : tensor<4x8xf32>
      %1 = weft.add %0, %b : tensor<4x8xf32>
      %2 = weft.tanh %1 : tensor<4x8xf32>
      weft.yield %2, %2 : tensor<4x8xf32>, tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$inits, Variadic<Weft_Tensor>:$sequences,
                       Variadic<Weft_Tensor>:$invariants, I64Attr:$length, BoolAttr:$reverse);
  let results = (outs Variadic<Weft_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = helpers # [{
    ::mlir::Block &getStep() { return getBody().front(); }
    ::mlir::Operation::operand_range getYielded() { return getStep().getTerminator()->getOperands(); }
  }];
}

def Weft_YieldOp : Weft_PureOp<"yield", [Terminator, HasParent<"ScanOp">]> {
  let summary = "The next state and the outputs of a step";
  let description = [{
    Ends the body of a scan. Any number of tensors, whose types the scan checks.

    Created with the scan and removed with it.

    ```mlir
    weft.yield %next, %output : tensor<4x8xf32>, tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ }]>];
}

def Weft_LoopOp : Weft_RecurrenceOp<"loop",
    [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments,
     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A scan whose step is a function";
  let description = [{
    What weft.scan is, with the step as a function of the module, marked weft.step, so that
    every pass over functions sees it. The function takes state, elements and invariants, and
    returns the next state and the outputs of the step. Invariants may have layouts.

    With a factor the function is that many steps, one after another: it takes as many elements
    of each sequence, those of one sequence together, and returns as many of each output. The
    steps that are left at the end are run one by one by the function rest.

    * loop_c1: step and rest name functions that are marked weft.step.
    * loop_c2: the function takes the state, factor elements of each sequence, and the invariants;
      rest one element of each, and its own invariants.
    * loop_c3: the function returns the next state and the outputs of factor steps; rest of one.
    * loop_c4: factor is at least 1; rest is there where it does not divide length.

    Created by weft-outline-scans, unrolled by weft-unroll-loops; becomes a loop in the entry.

    ```mlir
    %last, %all = weft.loop @step 100 reverse false carry(%h0) over(%xs) with(%bias)
      : (tensor<4x8xf32>, tensor<100x4x8xf32>, tensor<4x8xf32>)
      -> (tensor<4x8xf32>, tensor<100x4x8xf32>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$step, Variadic<Weft_Tensor>:$inits,
                       Variadic<Weft_Tensor>:$sequences, Variadic<Weft_Tensor>:$invariants,
                       Variadic<Weft_Tensor>:$restInvariants, I64Attr:$length, BoolAttr:$reverse,
                       DefaultValuedAttr<I64Attr, "1">:$factor,
                       OptionalAttr<FlatSymbolRefAttr>:$rest);
  let results = (outs Variadic<Weft_Tensor>:$results);
  let assemblyFormat = "$step $length (`by` $factor^)? `reverse` $reverse `carry` `(` $inits `)` `over` `(` $sequences `)` `with` `(` $invariants `)` (`rest` $rest^ `with` `(` $restInvariants `)`)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = helpers # [{
    /// What the function rest takes.
    ::llvm::SmallVector<::mlir::Type> getRestInputs();
    /// What it gives.
    ::llvm::SmallVector<::mlir::Type> getRestResults();
  }];
}

#endif
