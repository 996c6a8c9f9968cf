// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that put elements in order.
#ifndef WEFT_GRAPH_ORDER_TD
#define WEFT_GRAPH_ORDER_TD

include "compiler/Graph/OpBase.td"

def Weft_SortOp : Weft_InferredOp<"sort", [Weft_EmittedWhole]> {
  let summary = "The first elements along one dim in ascending or descending order, and where they stood";
  let description = [{
    values[..., j, ...] = operand[..., indices[..., j, ...], ...] for j < count along dim, where
    indices are the first `count` of the positions in order of their elements. Equal elements
    (0.0 and -0.0 are equal, and all NaNs are) stay in the order of their positions, ascending
    or descending: the order is stable, so that it is defined where PyTorch's is not. A NaN
    is greater than any number. operand: any element type, which values keep; indices: i64.

    * sort_c1: dim is a dim of the operand.
    * sort_c2: count is at least 0 and at most the size of dim.

    Created by the frontend (sort, topk, kthvalue, median); a kernel of its own, which keeps
    the op until it is emitted.

    ```mlir
    %values, %indices = weft.sort %x dim 1 descending true count 5
      : tensor<4x1000xf32> -> tensor<4x5xf32>, tensor<4x5xi64>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand, I64Attr:$dim, BoolAttr:$descending, I64Attr:$count);
  let results = (outs Weft_Tensor:$values, Weft_IntTensor:$indices);
  let assemblyFormat = "$operand `dim` $dim `descending` $descending `count` $count attr-dict `:` type($operand) `->` type($values) `,` type($indices)";
}

#endif
