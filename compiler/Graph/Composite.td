// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops whose meaning is a small program of the other ops.
#ifndef WEFT_GRAPH_COMPOSITE_TD
#define WEFT_GRAPH_COMPOSITE_TD

include "compiler/Graph/OpBase.td"

class Weft_CompositeOp<string mnemonic, list<Trait> traits = []>
    : Weft_PureOp<mnemonic, !listconcat(
        [DeclareOpInterfaceMethods<Weft_CompositeOpInterface>], traits)>;

class Weft_SoftmaxLikeOp<string mnemonic, string text>
    : Weft_CompositeOp<mnemonic, [SameOperandsAndResultType]> {
  let summary = text;
  let description = !strconcat([{
    operand, result: any shape of one float type; bf16 and f16 compute in f32. A row of
    nothing but -inf is NaN, as in torch.

    * }], mnemonic, [{_c1: dim is a dim of the operand.

    Created by the frontend; removed by decompose-composites.

    ```mlir
    %0 = weft.}], mnemonic, [{ %x dim 1 : tensor<4x8xf32>
    ```
  }]);
  let arguments = (ins Weft_FloatTensor:$operand, I64Attr:$dim);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Weft_SoftmaxOp : Weft_SoftmaxLikeOp<"softmax", "exp(x - max) / sum exp(x - max) along one dim">;
def Weft_LogSoftmaxOp : Weft_SoftmaxLikeOp<"log_softmax", "x - max - log(sum exp(x - max)) along one dim">;

def Weft_LayerNormOp : Weft_CompositeOp<"layer_norm", [AttrSizedOperandSegments, AllTypesMatch<["operand", "result"]>]> {
  let summary = "(x - mean) / sqrt(var + eps) over the trailing dims, then weight and bias";
  let description = [{
    result = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias, with the means
    over the last normalizedDims dims. operand: (b..., f...); weight, bias: (f...) of any
    float type; result: the operand's type. bf16 and f16 compute in f32.

    * layer_norm_c1: normalizedDims is at least 1 and at most the rank.
    * layer_norm_c2: weight and bias have the shape of the last normalizedDims dims.

    Created by the frontend; removed by decompose-composites.

    ```mlir
    %0 = weft.layer_norm %x weight %w : tensor<8xf32> bias %b : tensor<8xf32> over 1 eps 1.0e-05
      : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Weft_FloatTensor:$operand, Optional<Weft_FloatTensor>:$weight,
                       Optional<Weft_FloatTensor>:$bias, I64Attr:$normalizedDims, F64Attr:$eps);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = [{
    $operand (`weight` $weight^ `:` type($weight))? (`bias` $bias^ `:` type($bias))?
    `over` $normalizedDims `eps` $eps attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}
def Weft_RmsNormOp : Weft_CompositeOp<"rms_norm", [AllTypesMatch<["operand", "result"]>]> {
  let summary = "x / sqrt(mean(x^2) + eps) over the trailing dims, then weight";
  let description = [{
    result = x / sqrt(mean(x^2) + eps) * weight, with the mean over the last normalizedDims
    dims. operand: (b..., f...); weight: (f...) of any float type; result: the operand's
    type. bf16 and f16 compute in f32.

    * rms_norm_c1: normalizedDims is at least 1 and at most the rank.
    * rms_norm_c2: the weight has the shape of the last normalizedDims dims.

    Created by the frontend; removed by decompose-composites.

    ```mlir
    %0 = weft.rms_norm %x weight %w : tensor<8xf32> over 1 eps 1.0e-06 : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Weft_FloatTensor:$operand, Optional<Weft_FloatTensor>:$weight,
                       I64Attr:$normalizedDims, F64Attr:$eps);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = [{
    $operand (`weight` $weight^ `:` type($weight))? `over` $normalizedDims `eps` $eps
    attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}
def Weft_GroupNormOp : Weft_CompositeOp<"group_norm", [AttrSizedOperandSegments, AllTypesMatch<["operand", "result"]>]> {
  let summary = "Layer norm of each group of channels of (n, c, s...), then weight and bias per channel";
  let description = [{
    result = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight[c] + bias[c], with the
    means over the channels of a group and s.... operand: (n, c, s...); weight, bias: (c) of
    any float type; result: the operand's type. bf16 and f16 compute in f32.

    * group_norm_c1: the operand has rank 2 or more.
    * group_norm_c2: groups divide the channels.
    * group_norm_c3: weight and bias have shape (c).

    Created by the frontend; removed by decompose-composites.

    ```mlir
    %0 = weft.group_norm %x weight %w : tensor<6xf32> groups 3 eps 1.0e-05 : tensor<2x6x4xf32>
    ```
  }];
  let arguments = (ins Weft_FloatTensor:$operand, Optional<Weft_FloatTensor>:$weight,
                       Optional<Weft_FloatTensor>:$bias, I64Attr:$groups, F64Attr:$eps);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = [{
    $operand (`weight` $weight^ `:` type($weight))? (`bias` $bias^ `:` type($bias))?
    `groups` $groups `eps` $eps attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}
def Weft_BatchNormOp : Weft_CompositeOp<"batch_norm", [AttrSizedOperandSegments, AllTypesMatch<["operand", "result"]>]> {
  let summary = "(x - mean_c) / sqrt(var_c + eps) of (n, c, s...) with given statistics, then weight and bias";
  let description = [{
    result = x * scale[c] + (bias[c] - mean[c] * scale[c]) with
    scale = weight / sqrt(variance + eps). operand: (n, c, s...); mean, variance, weight,
    bias: (c) of any float type; result: the operand's type. bf16 and f16 compute in f32.

    * batch_norm_c1: the operand has rank 2 or more.
    * batch_norm_c2: mean, variance, weight and bias have shape (c).

    Created by the frontend; removed by decompose-composites.

    ```mlir
    %0 = weft.batch_norm %x mean %m variance %v : tensor<6xf32>, tensor<6xf32> eps 1.0e-05
      : tensor<2x6x4xf32>
    ```
  }];
  let arguments = (ins Weft_FloatTensor:$operand, Weft_FloatTensor:$mean, Weft_FloatTensor:$variance,
                       Optional<Weft_FloatTensor>:$weight, Optional<Weft_FloatTensor>:$bias, F64Attr:$eps);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = [{
    $operand `mean` $mean `variance` $variance `:` type($mean) `,` type($variance)
    (`weight` $weight^ `:` type($weight))? (`bias` $bias^ `:` type($bias))?
    `eps` $eps attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}
def Weft_GeluOp : Weft_CompositeOp<"gelu", [SameOperandsAndResultType]> {
  let summary = "x * Phi(x), exact (erf) or by torch's tanh formula";
  let description = [{
    erf: result = x / 2 (1 + erf(x / sqrt(2))); tanh: result =
    x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). The type is kept; bf16 and f16 compute
    in f32.

    * gelu_c1: operand and result have one type, layout included.

    Created by the frontend; removed by decompose-composites.

    ```mlir
    %0 = weft.gelu <erf> %x : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Weft_GeluKindAttr:$kind, Weft_FloatTensor:$operand);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = "$kind $operand attr-dict `:` type($result)";
}
def Weft_SiluOp : Weft_CompositeOp<"silu", [SameOperandsAndResultType]> {
  let summary = "x * sigmoid(x)";
  let description = [{
    result = x * sigmoid(x). The type is kept; bf16 and f16 compute in f32.

    * silu_c1: operand and result have one type, layout included.

    Created by the frontend; removed by decompose-composites.

    ```mlir
    %0 = weft.silu %x : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Weft_FloatTensor:$operand);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
def Weft_AttentionOp : Weft_InferredOp<"attention",
    [DeclareOpInterfaceMethods<Weft_CompositeOpInterface>, Weft_EmittedWhole,
     Weft_EmittedWithLayouts]> {
  let summary = "softmax(scale q k^T + mask) v over (b..., h, t, d); causal hides keys behind the query";
  let description = [{
    result = softmax(scale * query key^T + mask) value. query: (b..., tq, d); key:
    (b..., tk, d); value: (b..., tk, e); mask: (b..., tq, tk), of i1 (true keeps a key) or a
    float type (added); result: (b..., tq, e). Causal keeps key j for query i when j <= i. A
    row whose keys are all hidden is zero. bf16 and f16 compute in f32. With hiddenScore, weights
    are the softmax of the scores whatever these are, so that a row of -inf is NaN, and a score
    that a mask of i1 hides is that number, instead of what it was.

    * attention_c1: query, key and value have one element type.
    * attention_c2: query, key and value have one rank, at least 2.
    * attention_c3: the key has the query's batch dims and d.
    * attention_c4: the value has the key's batch dims and tk.
    * attention_c5: the mask has shape (b..., tq, tk).
    * attention_c6: the mask's element type is i1 or a float type.
    * attention_c7: hiddenScore is negative.

    Created by the frontend and by form-attention; lowered as an attention kernel, or removed by
    decompose-composites where queries are few.

    ```mlir
    %0 = weft.attention %q, %k, %v causal true scale 0.125
      : tensor<2x4x64xf32>, tensor<2x6x64xf32>, tensor<2x6x64xf32> -> tensor<2x4x64xf32>
    ```
  }];
  let arguments = (ins Weft_FloatTensor:$query, Weft_FloatTensor:$key, Weft_FloatTensor:$value,
                       Optional<Weft_Tensor>:$mask, BoolAttr:$causal, F64Attr:$scale,
                       OptionalAttr<F64Attr>:$hiddenScore);
  let hasCanonicalizer = 1;
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^ `:` type($mask))? `causal` $causal `scale` $scale
    attr-dict `:` type($query) `,` type($key) `,` type($value) `->` type($result)
  }];
}

#endif
