// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants, and ops that only move elements.
#ifndef WEFT_GRAPH_SHAPE_TD
#define WEFT_GRAPH_SHAPE_TD

include "compiler/Graph/OpBase.td"

def Weft_ConstantOp : Weft_PureOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor known when compiling";
  let description = [{
    The value is in row-major order whatever the layout. Any element type. Large constants
    are arguments of the program instead.

    Created by the frontend, folds and decompositions; sunk into the kernels that use it.

    ```mlir
    %0 = weft.constant dense<1.0> : tensor<4xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "attr-dict $value";
}
def Weft_IotaOp : Weft_PureOp<"iota"> {
  let summary = "Each element is its index along one dim";
  let description = [{
    result[i0, i1, ...] = i_dim. result: (i...) of numbers.

    * iota_c1: dim is a dim of the result.
    * iota_c2: the element type counts (is not i1).

    Created by the frontend; sunk into the kernels that use it.

    ```mlir
    %0 = weft.iota 1 : tensor<2x8xi64>
    ```
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Weft_BroadcastInDimOp : Weft_PureOp<"broadcast_in_dim", [Weft_SharesMemory]> {
  let summary = "Place operand dim i at result dim dims[i] (size equal or 1) and repeat along the rest";
  let description = [{
    result[i...] = operand[j...] with j_k = i_dims[k], or 0 where operand dim k has size 1.
    operand and result: any shapes of one element type.

    * broadcast_in_dim_c1: dims has one entry per operand dim.
    * broadcast_in_dim_c2: dims are distinct dims of the result.
    * broadcast_in_dim_c3: operand dim k has size 1 or that of result dim dims[k].
    * broadcast_in_dim_c4: operand and result have one element type.

    Created by the frontend and by decompositions; becomes an indexing map in linalg.

    ```mlir
    %0 = weft.broadcast_in_dim %bias dims [1] : tensor<8xf32> -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
def Weft_ReshapeOp : Weft_PureOp<"reshape", [Weft_SharesMemory]> {
  let summary = "The same elements in row-major order under another shape";
  let description = [{
    result and operand, read in row-major order, are the same sequence of elements.

    * reshape_c1: operand and result have equally many elements.
    * reshape_c2: operand and result have one element type.

    Created by the frontend; merged by canonicalisation, sunk into kernels by fusion.

    ```mlir
    %0 = weft.reshape %x : tensor<2x64x12x64xf32> -> tensor<2x64x768xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
def Weft_TransposeOp : Weft_InferredOp<"transpose", [Weft_SharesMemory]> {
  let summary = "Result dim i is operand dim perm[i]";
  let description = [{
    result[i_0, i_1, ...] = operand[j...] with j_perm[k] = i_k. Any element type, kept.

    * transpose_c1: perm has one entry per operand dim.
    * transpose_c2: the entries are distinct dims of the operand.

    Created by the frontend; taken into contractions by simplification, otherwise sunk into
    kernels by fusion.

    ```mlir
    %0 = weft.transpose %x perm [0, 2, 1] : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$perm);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operand `perm` $perm attr-dict `:` type($operand) `->` type($result)";
}
def Weft_SliceOp : Weft_InferredOp<"slice", [Weft_SharesMemory]> {
  let summary = "Elements start, start + stride, ... below limit of every dim";
  let description = [{
    result[i...] = operand[start + i * stride...]. Any element type, kept.

    * slice_c1: start, limit and stride have one entry per dim; starts and limits are not
      negative, strides positive.
    * slice_c2: start is at most limit, and limit at most the size of its dim.

    Created by the frontend; merged by canonicalisation, sunk into kernels by fusion.

    ```mlir
    %0 = weft.slice %x [0, 2] to [4, 8] by [1, 3] : tensor<4x8xf32> -> tensor<4x2xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$start, DenseI64ArrayAttr:$limit,
                       DenseI64ArrayAttr:$stride);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operand $start `to` $limit `by` $stride attr-dict `:` type($operand) `->` type($result)";
}
def Weft_AdvanceOp : Weft_PureOp<"advance", [AllTypesMatch<["operand", "result"]>]> {
  let summary = "The memory of a tensor from one of its elements on";
  let description = [{
    What stands in memory `offset` elements behind an element of operand, whatever the layout,
    is that element of result. Those behind the last one are not to be read. Any element type,
    kept.

    * advance_c1: offset is not negative, and at most the number of elements in memory.

    Created where kernels become one that read different parts of an operand; becomes a view.

    ```mlir
    %0 = weft.advance %x by 768 : tensor<32x768xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand, I64Attr:$offset);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `by` $offset attr-dict `:` type($operand)";
  let hasVerifier = 1;
}
def Weft_PadOp : Weft_InferredOp<"pad"> {
  let summary = "low and high copies of a scalar value around every dim (not negative)";
  let description = [{
    result[i...] = operand[i - low...] where that exists, else value. Any element type, kept.

    * pad_c1: value has rank 0.
    * pad_c2: operand and value have one element type.
    * pad_c3: low and high have one entry per dim, none negative.

    Created by the frontend and from the padding of convolutions; becomes tensor.pad.

    ```mlir
    %0 = weft.pad %x, %zero low [0, 1] high [0, 1]
      : tensor<4x8xf32>, tensor<f32> -> tensor<4x10xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand, Weft_Tensor:$value, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `,` $value `low` $low `high` $high attr-dict `:` type($operand) `,` type($value) `->` type($result)";
}
def Weft_ConcatOp : Weft_InferredOp<"concat"> {
  let summary = "Tensors one after another along one dim";
  let description = [{
    result = operands[0], operands[1], ... along dim. Any element type, kept.

    * concat_c1: there is an operand.
    * concat_c2: dim is a dim of the operands.
    * concat_c3: the operands have one element type.
    * concat_c4: the operands' shapes agree but for dim.

    Created by the frontend; slices that follow one another become one slice by
    canonicalisation; the rest becomes insertions into one tensor.

    ```mlir
    %0 = weft.concat %a, %b dim 1 : tensor<2x3xf32>, tensor<2x5xf32> -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` type($operands) `->` type($result)";
}
def Weft_ReverseOp : Weft_PureOp<"reverse", [SameOperandsAndResultType]> {
  let summary = "The order of the elements turned round along dims";
  let description = [{
    result[i...] = operand[j...] with j_k = size_k - 1 - i_k for k in dims, else i_k.

    * reverse_c1: dims are distinct dims of the operand.

    Created by the frontend (flip); becomes an indexing map in linalg.

    ```mlir
    %0 = weft.reverse %x dims [0] : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Weft_RelayoutOp : Weft_PureOp<"relayout", [Weft_SharesMemory]> {
  let summary = "The same tensor with its elements lying elsewhere in memory";
  let description = [{
    result[i...] = operand[i...]; only the layouts of the types differ.

    * relayout_c1: operand and result agree in shape and element type.

    Created by choose-layouts; hoisted into `@bind` for weights, otherwise a copy.

    ```mlir
    %0 = weft.relayout %x
      : tensor<128x768xf32> -> tensor<128x768xf32, #weft.layout<[0, 1], tile 0 by 16>>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

#endif
