// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that read where tensors of indices say.
#ifndef WEFT_GRAPH_INDEX_TD
#define WEFT_GRAPH_INDEX_TD

include "compiler/Graph/OpBase.td"

def Weft_GatherOp : Weft_InferredOp<"gather"> {
  let summary = "Index operand dims with integer tensors of one shape; other dims are kept whole, behind";
  let description = [{
    result[i..., r...] = operand[r... with dim indexedDims[j] = indices_j[i...]]: the shape is
    that of the indices, then the operand's dims that are not indexed. Indices are clamped to
    the operand; a program that must refuse others asserts so itself. operand: any element
    type, kept; indices: integers.

    * gather_c1: there is one tensor of indices per entry of indexedDims, and at least one.
    * gather_c2: indexedDims are distinct dims of the operand.
    * gather_c3: the indices have one shape.
    * gather_c4: an indexed dim is not empty, unless there are no indices.

    Created by the frontend; lowered to linalg, with tensor.extract in the body.

    ```mlir
    %0 = weft.gather %table[%ids] dims [0]
      : tensor<30522x768xf32>, tensor<1x128xi64> -> tensor<1x128x768xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand, Variadic<Weft_IntTensor>:$indices,
                       DenseI64ArrayAttr:$indexedDims);
  let results = (outs Weft_Tensor:$result);
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operand `[` $indices `]` `dims` $indexedDims attr-dict `:` type($operand) `,` type($indices) `->` type($result)";
}

#endif
