// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The op that gives a value a derivative.
#ifndef WEFT_GRAPH_SLOPES_TD
#define WEFT_GRAPH_SLOPES_TD

include "compiler/Graph/OpBase.td"

def Weft_WithSlopesOp : Weft_PureOp<"with_slopes", [AttrSizedOperandSegments, AllTypesMatch<["value", "result"]>, Weft_SharesMemory]> {
  let summary = "A value whose derivative is given, not that of its steps";
  let description = [{
    result[k...] = value[k...], and d result[k...] = the sum over i at dims and over the inputs of
    slope[k..., i...] * d input[k..., i...]. value, result: (k...), and each input and slope
    (k..., i... at dims), all of one element type. The value's own steps have no derivative; the
    slopes do, so that any order follows. With `weft.subgradient` = "zero" a slope of zero passes
    nothing, not even an infinite cotangent.

    * with_slopes_c1: value and result have one type, layout included.
    * with_slopes_c2: there are as many slopes as inputs.
    * with_slopes_c3: dims are distinct dims of each input.
    * with_slopes_c4: an input and its slope have one type, which without dims is the value's.

    Created by the frontend for training, where PyTorch's gradient is a formula of its own; read by
    differentiate, removed by drop-slopes.

    ```mlir
    %0 = weft.with_slopes %y along %x by %slope dims []
      : tensor<4xf32> (tensor<4xf32>) by (tensor<4xf32>)
    ```
  }];
  let arguments = (ins Weft_FloatTensor:$value, Variadic<Weft_FloatTensor>:$inputs,
                       Variadic<Weft_FloatTensor>:$slopes, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = "$value `along` $inputs `by` $slopes `dims` $dims attr-dict `:` type($value) `(` type($inputs) `)` `by` `(` type($slopes) `)`";
  let hasVerifier = 1;
}

#endif
