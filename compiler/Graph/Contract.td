// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of products.
#ifndef WEFT_GRAPH_CONTRACT_TD
#define WEFT_GRAPH_CONTRACT_TD

include "compiler/Graph/OpBase.td"

def Weft_DotGeneralOp : Weft_InferredOp<"dot_general"> {
  let summary = "Sum of products over contracted dims, batched: (batch..., lhs free..., rhs free...)";
  let arguments = (ins Weft_Tensor:$lhs, Weft_Tensor:$rhs,
                       DenseI64ArrayAttr:$lhsBatch, DenseI64ArrayAttr:$rhsBatch,
                       DenseI64ArrayAttr:$lhsContract, DenseI64ArrayAttr:$rhsContract);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `batch` $lhsBatch `x` $rhsBatch `contract` $lhsContract `x` $rhsContract
    attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}
def Weft_MultiDotOp : Weft_InferredOp<"multi_dot"> {
  let summary = "One lhs against several rhs of one contraction each, walked as one kernel (Q, K, V)";
  let description = [{
    result_i = dot_general(lhs, rhs_i) with the same dims for every i; rhs may differ in
    their free sizes. Created by merge-matmuls, lowered to one contraction kernel.
  }];
  let arguments = (ins Weft_Tensor:$lhs, Variadic<Weft_Tensor>:$rhs,
                       DenseI64ArrayAttr:$lhsContract, DenseI64ArrayAttr:$rhsContract);
  let results = (outs Variadic<Weft_Tensor>:$products);
  let assemblyFormat = [{
    $lhs `with` $rhs `contract` $lhsContract `x` $rhsContract
    attr-dict `:` type($lhs) `,` type($rhs) `->` type($products)
  }];
}
def Weft_ConvOp : Weft_InferredOp<"conv"> {
  let summary = "Cross-correlation of (n, c, s...) with (o, c / groups, k...), zero padding";
  let arguments = (ins Weft_Tensor:$input, Weft_Tensor:$weight, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padLow, DenseI64ArrayAttr:$padHigh,
                       DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `strides` $strides `pad` $padLow `x` $padHigh `dilations` $dilations
    `groups` $groups attr-dict `:` type($input) `,` type($weight) `->` type($result)
  }];
}

#endif
