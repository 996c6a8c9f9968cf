// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that read and write where tensors of indices say.
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

def Weft_ScatterOp : Weft_InferredOp<"scatter", [Weft_EmittedWhole]> {
  let summary = "Write updates into a copy of a tensor, where gather would read with the same indices";
  let description = [{
    result = operand; then, for i... in row-major order,
    result[r... with dim indexedDims[j] = indices_j[i...]] becomes updates[i..., r...] (set),
    or what it was, combined with it. Several updates of one element are applied in that
    order, so that of those that set it the last one stays; each combination is rounded to the
    element type. A float max or min with a NaN is NaN; of bools they are or and and. An
    update whose index lies outside of the operand is left out; a program that must refuse it
    asserts so itself. operand, updates: any element type, kept; indices: integers.

    * scatter_c1: there is one tensor of indices per entry of indexedDims, and at least one.
    * scatter_c2: indexedDims are distinct dims of the operand.
    * scatter_c3: the indices have one shape.
    * scatter_c4: the shape of the updates is that of the indices, then the operand's dims
      that are not indexed.
    * scatter_c5: operand and updates have one element type.
    * scatter_c6: sum and prod combine numbers.

    Created by the frontend; a kernel of its own, which keeps the op until it is emitted.

    ```mlir
    %0 = weft.scatter <sum> %rows into %table[%ids] dims [0]
      : tensor<128x768xf32> into tensor<30522x768xf32>, tensor<128xi64> -> tensor<30522x768xf32>
    ```
  }];
  let arguments = (ins Weft_ScatterKindAttr:$kind, Weft_Tensor:$operand, Weft_Tensor:$updates,
                       Variadic<Weft_IntTensor>:$indices, DenseI64ArrayAttr:$indexedDims);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$kind $updates `into` $operand `[` $indices `]` `dims` $indexedDims attr-dict `:` type($updates) `into` type($operand) `,` type($indices) `->` type($result)";
}

#endif
