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
  let arguments = (ins Weft_FloatTensor:$operand, I64Attr:$dim);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Weft_SoftmaxOp : Weft_SoftmaxLikeOp<"softmax", "exp(x - max) / sum exp(x - max) along one dim">;
def Weft_LogSoftmaxOp : Weft_SoftmaxLikeOp<"log_softmax", "logarithm of softmax along one dim">;

def Weft_LayerNormOp : Weft_CompositeOp<"layer_norm", [AttrSizedOperandSegments, AllTypesMatch<["operand", "result"]>]> {
  let summary = "(x - mean) / sqrt(var + eps) over the trailing dims, then weight and bias";
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
  let arguments = (ins Weft_GeluKindAttr:$kind, Weft_FloatTensor:$operand);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = "$kind $operand attr-dict `:` type($result)";
}
def Weft_SiluOp : Weft_CompositeOp<"silu", [SameOperandsAndResultType]> {
  let summary = "x * sigmoid(x)";
  let arguments = (ins Weft_FloatTensor:$operand);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
def Weft_AttentionOp : Weft_InferredOp<"attention", [DeclareOpInterfaceMethods<Weft_CompositeOpInterface>]> {
  let summary = "softmax(scale q k^T + mask) v over (b..., h, t, d); causal hides keys behind the query";
  let description = [{
    q: (b..., h, tq, d), k: (b..., h, tk, d), v: (b..., h, tk, e), mask: (b..., h, tq, tk),
    bool (true keeps) or float (added); result (b..., h, tq, e). A row whose keys are all
    hidden is zero. Causal keeps key j for query i when j <= i.
  }];
  let arguments = (ins Weft_FloatTensor:$query, Weft_FloatTensor:$key, Weft_FloatTensor:$value,
                       Optional<Weft_Tensor>:$mask, BoolAttr:$causal, F64Attr:$scale);
  let results = (outs Weft_FloatTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^ `:` type($mask))? `causal` $causal `scale` $scale
    attr-dict `:` type($query) `,` type($key) `,` type($value) `->` type($result)
  }];
}

#endif
