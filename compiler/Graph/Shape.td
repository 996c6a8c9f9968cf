// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants, and ops that only move elements.
#ifndef WEFT_GRAPH_SHAPE_TD
#define WEFT_GRAPH_SHAPE_TD

include "compiler/Graph/OpBase.td"

def Weft_ConstantOp : Weft_PureOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor known when compiling";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "attr-dict $value";
}
def Weft_IotaOp : Weft_PureOp<"iota"> {
  let summary = "Each element is its index along one dim";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Weft_BroadcastInDimOp : Weft_PureOp<"broadcast_in_dim"> {
  let summary = "Place operand dim i at result dim dims[i] (size equal or 1) and repeat along the rest";
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
def Weft_ReshapeOp : Weft_PureOp<"reshape"> {
  let summary = "The same elements in row-major order under another shape";
  let arguments = (ins Weft_Tensor:$operand);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
def Weft_TransposeOp : Weft_InferredOp<"transpose"> {
  let summary = "Result dim i is operand dim perm[i]";
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$perm);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operand `perm` $perm attr-dict `:` type($operand) `->` type($result)";
}
def Weft_SliceOp : Weft_InferredOp<"slice"> {
  let summary = "Elements start, start + stride, ... below limit of every dim";
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$start, DenseI64ArrayAttr:$limit,
                       DenseI64ArrayAttr:$stride);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$operand $start `to` $limit `by` $stride attr-dict `:` type($operand) `->` type($result)";
}
def Weft_PadOp : Weft_InferredOp<"pad"> {
  let summary = "low and high copies of a scalar value around every dim (not negative)";
  let arguments = (ins Weft_Tensor:$operand, Weft_Tensor:$value, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `,` $value `low` $low `high` $high attr-dict `:` type($operand) `,` type($value) `->` type($result)";
}
def Weft_ConcatOp : Weft_InferredOp<"concat"> {
  let summary = "Tensors one after another along one dim";
  let arguments = (ins Variadic<Weft_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` type($operands) `->` type($result)";
}
def Weft_ReverseOp : Weft_PureOp<"reverse", [SameOperandsAndResultType]> {
  let summary = "The order of the elements turned round along dims";
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Weft_RelayoutOp : Weft_PureOp<"relayout"> {
  let summary = "The same tensor with its elements lying elsewhere in memory";
  let arguments = (ins Weft_Tensor:$operand);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

#endif
