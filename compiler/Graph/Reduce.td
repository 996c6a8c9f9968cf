// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that combine elements along dims.
#ifndef WEFT_GRAPH_REDUCE_TD
#define WEFT_GRAPH_REDUCE_TD

include "compiler/Graph/OpBase.td"

def Weft_ReduceOp : Weft_InferredOp<"reduce"> {
  let summary = "Combine all elements along dims, which disappear";
  let description = [{
    result[k...] = kind over r... of operand[k... with dims r...]. An empty sum is 0, product
    1, max -inf, min inf (of integers: the least and greatest), any false, all true. A float
    max or min with a NaN is NaN. The element type is kept.

    * reduce_c1: dims are distinct dims of the operand.
    * reduce_c2: any and all combine i1, the other kinds numbers.

    Created by the frontend and by decompositions; lowered to a linalg reduction.

    ```mlir
    %0 = weft.reduce <sum> %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$kind $operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
}
def Weft_ArgReduceOp : Weft_InferredOp<"arg_reduce", [DeclareOpInterfaceMethods<Weft_CompositeOpInterface>]> {
  let summary = "Index (i64) of the first largest or smallest element along one dim, which disappears";
  let description = [{
    result[k...] = the least i with operand[k..., i at dim] = max or min over dim; a NaN
    counts as both. operand: numbers or i1; result: i64.

    * arg_reduce_c1: dim is a dim of the operand.
    * arg_reduce_c2: kind is max or min.
    * arg_reduce_c3: dim is not empty.

    Created by the frontend; removed by decompose-composites.

    ```mlir
    %0 = weft.arg_reduce <max> %x dim 1 : tensor<4x8xf32> -> tensor<4xi64>
    ```
  }];
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$kind $operand `dim` $dim attr-dict `:` type($operand) `->` type($result)";
}
def Weft_CumulativeOp : Weft_PureOp<"cumulative", [SameOperandsAndResultType, Weft_EmittedWhole]> {
  let summary = "Running reduction along one dim, inclusive";
  let description = [{
    result[..., i, ...] = kind over j <= i of operand[..., j, ...] along dim. The type is kept.

    * cumulative_c1: dim is a dim of the operand.
    * cumulative_c2: any and all combine i1, the other kinds numbers.

    Created by the frontend; lowered to linalg.

    ```mlir
    %0 = weft.cumulative <sum> %x dim 1 : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$kind $operand `dim` $dim attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Weft_ReduceWindowOp : Weft_InferredOp<"reduce_window"> {
  let summary = "Reduce a sliding window; every array has one entry per dim; the operand is already padded";
  let description = [{
    result[i...] = kind over w... of operand[i * stride + w * dilation...] with w below window.
    The element type is kept.

    * reduce_window_c1: any and all combine i1, the other kinds numbers.
    * reduce_window_c2: window, strides and dilations have one positive entry per dim.
    * reduce_window_c3: the dilated window fits the operand.

    Created by the frontend (pooling); lowered to linalg.

    ```mlir
    %0 = weft.reduce_window <max> %x window [1, 2] strides [1, 2] dilations [1, 1]
      : tensor<4x8xf32> -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$kind $operand `window` $window `strides` $strides `dilations` $dilations attr-dict `:` type($operand) `->` type($result)";
}

#endif
