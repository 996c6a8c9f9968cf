// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ops of the weft dialect. Shapes below are logical; a layout never changes a meaning.
#ifndef WEFT_GRAPH_OPS_TD
#define WEFT_GRAPH_OPS_TD

include "compiler/Graph/Dialect.td"
include "compiler/Graph/Interfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Weft_Element : AnyTypeOf<[F64, F32, BF16, F16, I64, I32, I16, I8, UI8, I1]>;
def Weft_Tensor : RankedTensorOf<[Weft_Element]>;
def Weft_FloatTensor : RankedTensorOf<[F64, F32, BF16, F16]>;
def Weft_BoolTensor : RankedTensorOf<[I1]>;
def Weft_IntTensor : RankedTensorOf<[I64, I32, I16, I8, UI8]>;

class Weft_Op<string mnemonic, list<Trait> traits = []>
    : Op<Weft_Dialect, mnemonic, traits>;
class Weft_PureOp<string mnemonic, list<Trait> traits = []>
    : Weft_Op<mnemonic, !listconcat([Pure], traits)>;
class Weft_InferredOp<string mnemonic, list<Trait> traits = []>
    : Weft_PureOp<mnemonic, !listconcat([InferTypeOpAdaptor], traits)>;

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

class Weft_UnaryOp<string mnemonic, TypeConstraint type>
    : Weft_PureOp<mnemonic, [SameOperandsAndResultType, Elementwise]> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
class Weft_FloatUnaryOp<string mnemonic, string text> : Weft_UnaryOp<mnemonic, Weft_FloatTensor> {
  let summary = text;
}
def Weft_NegOp : Weft_UnaryOp<"neg", Weft_Tensor> { let summary = "-x"; let hasFolder = 1; }
def Weft_AbsOp : Weft_UnaryOp<"abs", Weft_Tensor> { let summary = "|x|"; }
def Weft_SignOp : Weft_UnaryOp<"sign", Weft_Tensor> { let summary = "-1, 0 or 1"; }
def Weft_NotOp : Weft_UnaryOp<"not", Weft_Tensor> { let summary = "bitwise (bool: logical) complement"; let hasFolder = 1; }
def Weft_CeilOp : Weft_FloatUnaryOp<"ceil", "smallest integer not below x">;
def Weft_FloorOp : Weft_FloatUnaryOp<"floor", "largest integer not above x">;
def Weft_RoundEvenOp : Weft_FloatUnaryOp<"round_even", "nearest integer, ties to even">;
def Weft_TruncOp : Weft_FloatUnaryOp<"trunc", "integer part of x">;
def Weft_ExpOp : Weft_FloatUnaryOp<"exp", "e^x">;
def Weft_Expm1Op : Weft_FloatUnaryOp<"expm1", "e^x - 1">;
def Weft_LogOp : Weft_FloatUnaryOp<"log", "natural logarithm">;
def Weft_Log1pOp : Weft_FloatUnaryOp<"log1p", "log(1 + x)">;
def Weft_SqrtOp : Weft_FloatUnaryOp<"sqrt", "square root">;
def Weft_RsqrtOp : Weft_FloatUnaryOp<"rsqrt", "1 / sqrt(x)">;
def Weft_SinOp : Weft_FloatUnaryOp<"sin", "sine">;
def Weft_CosOp : Weft_FloatUnaryOp<"cos", "cosine">;
def Weft_TanOp : Weft_FloatUnaryOp<"tan", "tangent">;
def Weft_AsinOp : Weft_FloatUnaryOp<"asin", "inverse sine">;
def Weft_AcosOp : Weft_FloatUnaryOp<"acos", "inverse cosine">;
def Weft_AtanOp : Weft_FloatUnaryOp<"atan", "inverse tangent">;
def Weft_SinhOp : Weft_FloatUnaryOp<"sinh", "hyperbolic sine">;
def Weft_CoshOp : Weft_FloatUnaryOp<"cosh", "hyperbolic cosine">;
def Weft_TanhOp : Weft_FloatUnaryOp<"tanh", "hyperbolic tangent">;
def Weft_SigmoidOp : Weft_FloatUnaryOp<"sigmoid", "1 / (1 + e^-x)">;
def Weft_ErfOp : Weft_FloatUnaryOp<"erf", "error function">;

class Weft_BinaryOp<string mnemonic, string text>
    : Weft_PureOp<mnemonic, [SameOperandsAndResultType, Elementwise]> {
  let summary = text;
  let arguments = (ins Weft_Tensor:$lhs, Weft_Tensor:$rhs);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}
def Weft_AddOp : Weft_BinaryOp<"add", "x + y (bool: or)"> { let hasFolder = 1; }
def Weft_SubOp : Weft_BinaryOp<"sub", "x - y"> { let hasFolder = 1; }
def Weft_MulOp : Weft_BinaryOp<"mul", "x * y (bool: and)"> { let hasFolder = 1; }
def Weft_DivOp : Weft_BinaryOp<"div", "x / y; integers truncate towards zero"> { let hasFolder = 1; }
def Weft_RemOp : Weft_BinaryOp<"rem", "remainder with the sign of x (C fmod)">;
def Weft_PowOp : Weft_BinaryOp<"pow", "x to the power y">;
def Weft_Atan2Op : Weft_BinaryOp<"atan2", "angle of (y, x), signs respected">;
def Weft_MaxOp : Weft_BinaryOp<"max", "larger of two, NaN if either is">;
def Weft_MinOp : Weft_BinaryOp<"min", "smaller of two, NaN if either is">;
def Weft_AndOp : Weft_BinaryOp<"and", "bitwise (bool: logical) and"> { let hasFolder = 1; }
def Weft_OrOp : Weft_BinaryOp<"or", "bitwise (bool: logical) or"> { let hasFolder = 1; }
def Weft_XorOp : Weft_BinaryOp<"xor", "bitwise (bool: logical) exclusive or">;

def Weft_CmpOp : Weft_InferredOp<"cmp", [SameTypeOperands, Elementwise]> {
  let summary = "Compare two tensors element by element";
  let arguments = (ins Weft_ComparePredicateAttr:$predicate, Weft_Tensor:$lhs, Weft_Tensor:$rhs);
  let results = (outs Weft_BoolTensor:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasFolder = 1;
}
def Weft_SelectOp : Weft_PureOp<"select", [AllTypesMatch<["onTrue", "onFalse", "result"]>, Elementwise]> {
  let summary = "Choose between two tensors element by element";
  let arguments = (ins Weft_BoolTensor:$condition, Weft_Tensor:$onTrue, Weft_Tensor:$onFalse);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$condition `,` $onTrue `,` $onFalse attr-dict `:` type($condition) `,` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Weft_ConvertOp : Weft_PureOp<"convert", [Elementwise]> {
  let summary = "Convert the element type as torch's Tensor.to does";
  let arguments = (ins Weft_Tensor:$operand);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

def Weft_ConstantOp : Weft_PureOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor known when compiling";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}
def Weft_IotaOp : Weft_PureOp<"iota"> {
  let summary = "Each element is its index along one dim";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Weft_BroadcastInDimOp : Weft_PureOp<"broadcast_in_dim"> {
  let summary = "Place operand dim i at result dim dims[i] (size equal or 1) and repeat along the rest";
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}
def Weft_ReshapeOp : Weft_PureOp<"reshape"> {
  let summary = "The same elements in row-major order under another shape";
  let arguments = (ins Weft_Tensor:$operand);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}
def Weft_TransposeOp : Weft_InferredOp<"transpose"> {
  let summary = "Result dim i is operand dim perm[i]";
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$perm);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `perm` $perm attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}
def Weft_SliceOp : Weft_InferredOp<"slice"> {
  let summary = "Elements start, start + stride, ... below limit of every dim";
  let arguments = (ins Weft_Tensor:$operand, DenseI64ArrayAttr:$start, DenseI64ArrayAttr:$limit,
                       DenseI64ArrayAttr:$stride);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand $start `to` $limit `by` $stride attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Weft_PadOp : Weft_InferredOp<"pad"> {
  let summary = "low and high copies of a scalar value around every dim (not negative)";
  let arguments = (ins Weft_Tensor:$operand, Weft_Tensor:$value, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `,` $value `low` $low `high` $high attr-dict `:` type($operand) `,` type($value) `->` type($result)";
  let hasVerifier = 1;
}
def Weft_ConcatOp : Weft_InferredOp<"concat"> {
  let summary = "Tensors one after another along one dim";
  let arguments = (ins Variadic<Weft_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` type($operands) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
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
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reduce
//===----------------------------------------------------------------------===//

def Weft_ReduceOp : Weft_InferredOp<"reduce"> {
  let summary = "Combine all elements along dims, which disappear";
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$kind $operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Weft_ArgReduceOp : Weft_InferredOp<"arg_reduce"> {
  let summary = "Index (i64) of the first largest or smallest element along one dim, which disappears";
  let arguments = (ins Weft_ReduceKindAttr:$kind, Weft_Tensor:$operand, I64Attr:$dim);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$kind $operand `dim` $dim attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
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
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Contract
//===----------------------------------------------------------------------===//

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
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
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
  let hasVerifier = 1;
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
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Index
//===----------------------------------------------------------------------===//

def Weft_GatherOp : Weft_InferredOp<"gather"> {
  let summary = "Index operand dims with integer tensors of one shape; other dims are kept whole, behind";
  let description = [{
    result[i..., r...] = operand[r... with dim indexed_dims[j] = indices_j[i...]]: the shape
    is that of the indices, then the operand's dims that are not indexed. Indices are
    clamped to the operand; a program that must refuse others asserts so itself.
  }];
  let arguments = (ins Weft_Tensor:$operand, Variadic<Weft_IntTensor>:$indices,
                       DenseI64ArrayAttr:$indexedDims);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$operand `[` $indices `]` `dims` $indexedDims attr-dict `:` type($operand) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

def Weft_AssertOp : Weft_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "Every element is true, or the call fails and leaves nothing behind";
  let arguments = (ins Weft_BoolTensor:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}
def Weft_TorchFallbackOp : Weft_Op<"torch_fallback", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "An ATen op without a lowering, run by PyTorch inside the program";
  let description = [{
    `target` names the overload; `arguments` is a JSON array of its arguments in schema
    order in which {"tensor": i} stands for operand i. Runs in program order.
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$operands, StrAttr:$target, StrAttr:$arguments);
  let results = (outs Variadic<Weft_Tensor>:$products);
  let assemblyFormat = "$target `(` $operands `)` $arguments attr-dict `:` functional-type($operands, $products)";
}

//===----------------------------------------------------------------------===//
// Composite
//===----------------------------------------------------------------------===//

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
def Weft_AttentionOp : Weft_CompositeOp<"attention", [InferTypeOpAdaptor]> {
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
  let hasVerifier = 1;
}

#endif
