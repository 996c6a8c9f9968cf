// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that combine elements along dims.
#ifndef WEFT_GRAPH_REDUCE_TD
#define WEFT_GRAPH_REDUCE_TD

include "compiler/Graph/OpBase.td"

def Weft_ReduceOp : Weft_InferredOp<"reduce"> {
  let summary = "Combine all elements along dims, which disappear";
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$kind $operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
}
def Weft_ArgReduceOp : Weft_InferredOp<"arg_reduce"> {
  let summary = "Index (i64) of the first largest or smallest element along one dim, which disappears";
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$kind $operand `dim` $dim attr-dict `:` type($operand) `->` type($result)";
}
def Weft_CumulativeOp : Weft_PureOp<"cumulative", [SameOperandsAndResultType]> {
  let summary = "Running reduction along one dim, inclusive";
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$kind $operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Weft_ReduceWindowOp : Weft_InferredOp<"reduce_window"> {
  let summary = "Reduce a sliding window; every array has one entry per dim; the operand is already padded";
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$kind $operand `window` $window `strides` $strides `dilations` $dilations attr-dict `:` type($operand) `->` type($result)";
}

#endif
