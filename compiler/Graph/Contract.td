// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of products.
#ifndef WEFT_GRAPH_CONTRACT_TD
#define WEFT_GRAPH_CONTRACT_TD

include "compiler/Graph/OpBase.td"

// Half precision accumulates in f32, and f32 may be the result, too.
class Weft_ContractionOp<string mnemonic>
    : Weft_InferredOp<mnemonic, [Weft_LinearContraction], "areSumsOf">;

def Weft_DotGeneralOp : Weft_ContractionOp<"dot_general"> {
  let summary = "Sum of products over contracted dims, batched: (batch..., lhs free..., rhs free...)";
  let description = [{
    result[b..., m..., n...] = sum over k... of lhs[b, m, k] * rhs[b, n, k], with batch and
    contracted dims where the attributes say. The element type is kept; f16 and bf16
    accumulate in f32, which the result may have, too.

    * dot_general_c1: lhs and rhs have one element type.
    * dot_general_c2: lhsBatch and lhsContract are distinct dims of lhs.
    * dot_general_c3: rhsBatch and rhsContract are distinct dims of rhs.
    * dot_general_c4: the batch dims pair up and have equal sizes.
    * dot_general_c5: the contracted dims pair up and have equal sizes.
    * dot_general_c6: the elements are numbers.

    Created by the frontend; lowered as a contraction kernel.

    ```mlir
    %0 = weft.dot_general %x, %w batch [] x [] contract [1] x [1]
      : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$lhs, Weft_Tensor:$rhs,
                       DenseI64ArrayAttr:$lhsBatch, DenseI64ArrayAttr:$rhsBatch,
                       DenseI64ArrayAttr:$lhsContract, DenseI64ArrayAttr:$rhsContract);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `batch` $lhsBatch `x` $rhsBatch `contract` $lhsContract `x` $rhsContract
    attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}
def Weft_MultiDotOp : Weft_ContractionOp<"multi_dot"> {
  let summary = "One lhs against several rhs of one contraction each, walked as one kernel (Q, K, V)";
  let description = [{
    products[i] = dot_general(lhs, rhs[i]) without batch dims and with the same contracted
    dims for every i. rhs may differ in their free sizes. The element type is that of
    dot_general.

    * multi_dot_c1: there is a rhs.
    * multi_dot_c2: lhs and each rhs satisfy the constraints of dot_general.

    Created by merge-matmuls; lowered as one contraction kernel.

    ```mlir
    %q, %k = weft.multi_dot %x with %wq, %wk contract [1] x [1]
      : tensor<4x8xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$lhs, Variadic<Weft_Tensor>:$rhs,
                       DenseI64ArrayAttr:$lhsContract, DenseI64ArrayAttr:$rhsContract);
  let results = (outs Variadic<Weft_Tensor>:$products);
  let assemblyFormat = [{
    $lhs `with` $rhs `contract` $lhsContract `x` $rhsContract
    attr-dict `:` type($lhs) `,` type($rhs) `->` type($products)
  }];
}
def Weft_ConvOp : Weft_ContractionOp<"conv"> {
  let summary = "Cross-correlation of (n, c, s...) with (o, c / groups, k...), zero padding";
  let description = [{
    result[n, o, s...] = sum over c, k... of
    padded[n, g(o) * C + c, s * stride + k * dilation...] * weight[o, c, k...], where C is
    weight dim 1, g(o) the group of o, and padded is the input between padLow and padHigh
    zeros. input: (n, c, s...); weight: (o, c / groups, k...); the element type is that of
    dot_general.

    * conv_c1: input and weight have one element type.
    * conv_c2: input and weight have one rank, above 2.
    * conv_c3: strides, padLow, padHigh and dilations have one entry per spatial dim; strides
      and dilations are positive, pads not negative.
    * conv_c4: groups divide the output channels.
    * conv_c5: the input's channels are groups times weight dim 1.
    * conv_c6: the dilated weight fits the padded input.
    * conv_c7: the elements are numbers.

    Created by the frontend; its padding becomes weft.pad; lowered as a contraction kernel.

    ```mlir
    %0 = weft.conv %x, %w strides [1, 1] pad [1, 1] x [1, 1] dilations [1, 1] groups 1
      : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x8x8xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$input, Weft_Tensor:$weight, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padLow, DenseI64ArrayAttr:$padHigh,
                       DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `strides` $strides `pad` $padLow `x` $padHigh `dilations` $dilations
    `groups` $groups attr-dict `:` type($input) `,` type($weight) `->` type($result)
  }];
}
def Weft_WinogradConvOp : Weft_InferredOp<"winograd_conv", [Weft_EmittedWhole, Weft_EmittedWithLayouts]> {
  let summary = "Cross-correlation with 3x3 windows by Winograd's F(2x2, 3x3)";
  let description = [{
    The result that `weft.conv` of input and weight has without padding and with stride 1, where
    transformed[4 * i + j, c, o] = (G weight[o, c] G^T)[i, j]. For each block of 2x2 pixels, 4x4
    pixels of the input are transformed, multiplied by the transformed weight, summed over c, and
    transformed back: 16 multiplications in place of 36. Blocks whose sums are not finite are
    computed from the weight itself, as differences of infinities would spread. input:
    (n, c, h, w); transformed: (16, c, o); weight: (o, c, 3, 3); result: (n, o, h - 2, w - 2).
    f32. Transforms and G: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks,
    2015, section 4.1.

    * winograd_conv_c1: input, transformed and weight are f32, of rank 4, 3 and 4.
    * winograd_conv_c2: weight is (o, c, 3, 3) for the c channels of the input.
    * winograd_conv_c3: transformed is (16, c, o).
    * winograd_conv_c4: h and w are at least 4.

    Created by use-winograd; lowered as a contraction kernel.

    ```mlir
    %0 = weft.winograd_conv %x, %u, %w : tensor<1x32x16x16xf32>, tensor<16x32x64xf32>,
      tensor<64x32x3x3xf32> -> tensor<1x64x14x14xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$input, Weft_Tensor:$transformed, Weft_Tensor:$weight);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $transformed `,` $weight attr-dict
    `:` type($input) `,` type($transformed) `,` type($weight) `->` type($result)
  }];
}

def Weft_GroupedDotOp : Weft_InferredOp<"grouped_dot", [Weft_EmittedWhole, Weft_EmittedWithLayouts]> {
  let summary = "Rows in consecutive groups, each group against a matrix of its own (mixtures of experts)";
  let description = [{
    result[s, n] = sum over k of rows[s, k] * weights[g, n, k] for the last g whose
    ends[g - 1] <= s < ends[g], where ends[-1] is 0; rows that no group holds are zero. rows: (s, k);
    weights: (g, n, k); ends: (g), of which only what lies in 0...s counts; result: (s, n).

    * grouped_dot_c1: rows and weights are of f32, ends of i32 or i64.
    * grouped_dot_c2: rows have rank 2, weights rank 3 and the same k, ends rank 1 and the same g.

    Created by the frontend; a kernel of its own, which keeps the op until it is emitted.

    ```mlir
    %0 = weft.grouped_dot %x, %w, %ends
      : tensor<24x8xf32>, tensor<4x64x8xf32>, tensor<4xi32> -> tensor<24x64xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$rows, Weft_Tensor:$weights, Weft_IntTensor:$ends);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = [{
    $rows `,` $weights `,` $ends attr-dict `:` type($rows) `,` type($weights) `,` type($ends)
    `->` type($result)
  }];
}

#endif
