// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that compute each element on its own.
#ifndef WEFT_GRAPH_ELEMENTWISE_TD
#define WEFT_GRAPH_ELEMENTWISE_TD

include "compiler/Graph/OpBase.td"

class Weft_UnaryOp<string mnemonic, TypeConstraint type>
    : Weft_PureOp<mnemonic, [SameOperandsAndResultType, Elementwise]> {
  let description = !strconcat([{
    result[i...] = f(operand[i...]), f as in the summary, correct to the last place or two.
    operand, result: (i...) of one element type; integers wrap.

    * }], mnemonic, [{_c1: operand and result have one type, layout included.

    Created by the frontend and by decompositions; lowered to linalg.

    ```mlir
    %0 = weft.}], mnemonic, [{ %x : tensor<4x8xf32>
    ```
  }]);
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
def Weft_Exp2Op : Weft_FloatUnaryOp<"exp2", "2^x">;
def Weft_Expm1Op : Weft_FloatUnaryOp<"expm1", "e^x - 1">;
def Weft_LogOp : Weft_FloatUnaryOp<"log", "natural logarithm">;
def Weft_Log2Op : Weft_FloatUnaryOp<"log2", "logarithm to base 2">;
def Weft_Log10Op : Weft_FloatUnaryOp<"log10", "logarithm to base 10">;
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
def Weft_AsinhOp : Weft_FloatUnaryOp<"asinh", "inverse hyperbolic sine">;
def Weft_AcoshOp : Weft_FloatUnaryOp<"acosh", "inverse hyperbolic cosine">;
def Weft_AtanhOp : Weft_FloatUnaryOp<"atanh", "inverse hyperbolic tangent">;
def Weft_SigmoidOp : Weft_FloatUnaryOp<"sigmoid", "1 / (1 + e^-x)">;
def Weft_ErfOp : Weft_FloatUnaryOp<"erf", "error function">;
def Weft_ErfcOp : Weft_FloatUnaryOp<"erfc", "1 - erf(x)">;

class Weft_BinaryOp<string mnemonic, string text, list<Trait> traits = []>
    : Weft_PureOp<mnemonic, !listconcat([SameOperandsAndResultType, Elementwise], traits)> {
  let summary = text;
  let description = !strconcat([{
    result[i...] = f(lhs[i...], rhs[i...]), f as in the summary. lhs, rhs, result: (i...) of
    one element type; integers wrap.

    * }], mnemonic, [{_c1: operands and result have one type, layout included.

    Created by the frontend and by decompositions; lowered to linalg.

    ```mlir
    %0 = weft.}], mnemonic, [{ %x, %y : tensor<4x8xf32>
    ```
  }]);
  let arguments = (ins Weft_Tensor:$lhs, Weft_Tensor:$rhs);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}
def Weft_AddOp : Weft_BinaryOp<"add", "x + y (bool: or)", [Commutative]> { let hasFolder = 1; }
def Weft_SubOp : Weft_BinaryOp<"sub", "x - y"> { let hasFolder = 1; }
def Weft_MulOp : Weft_BinaryOp<"mul", "x * y (bool: and)", [Commutative]> { let hasFolder = 1; }
def Weft_DivOp : Weft_BinaryOp<"div", "x / y; integers truncate towards zero"> { let hasFolder = 1; }
def Weft_RemOp : Weft_BinaryOp<"rem", "remainder with the sign of x (C fmod)">;
def Weft_PowOp : Weft_BinaryOp<"pow", "x to the power y">;
def Weft_Atan2Op : Weft_BinaryOp<"atan2", "angle of (y, x), signs respected">;
def Weft_CopySignOp : Weft_BinaryOp<"copysign", "x with the sign bit of y; floating-point">;
def Weft_MaxOp : Weft_BinaryOp<"max", "larger of two, NaN if either is", [Commutative]> { let hasFolder = 1; }
def Weft_MinOp : Weft_BinaryOp<"min", "smaller of two, NaN if either is", [Commutative]> { let hasFolder = 1; }
def Weft_AndOp : Weft_BinaryOp<"and", "bitwise (bool: logical) and", [Commutative]> { let hasFolder = 1; }
def Weft_OrOp : Weft_BinaryOp<"or", "bitwise (bool: logical) or", [Commutative]> { let hasFolder = 1; }
def Weft_XorOp : Weft_BinaryOp<"xor", "bitwise (bool: logical) exclusive or", [Commutative]> { let hasFolder = 1; }

def Weft_FmaOp : Weft_PureOp<"fma", [SameOperandsAndResultType, Elementwise]> {
  let summary = "x * y + z with one rounding (bool: (x and y) or z)";
  let description = [{
    result[i...] = lhs[i...] * rhs[i...] + addend[i...]. lhs, rhs, addend, result: (i...) of one
    element type. The product of floats is not rounded ahead of the sum; f16 and bf16 compute in
    f32; integers wrap.

    * fma_c1: operands and result have one type, layout included.

    Created by passes, users' among them, and by the frontend where PyTorch's kernel rounds once or
    has another formula; lowered to linalg.

    ```mlir
    %0 = weft.fma %x, %y, %z : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$lhs, Weft_Tensor:$rhs, Weft_Tensor:$addend);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `,` $addend attr-dict `:` type($result)";
}
def Weft_PhiloxOp : Weft_PureOp<"philox", [SameOperandsAndResultType, Elementwise]> {
  let summary = "Random bits of a counter and a key";
  let description = [{
    result[i...] = the first word of Philox2x32-10 (Salmon et al., "Parallel random numbers: as easy
    as 1, 2, 3", SC 2011) of the counter (low[i...], high[i...]) under the key key[i...]. All of
    them: (i...) of i32, whose bits count. What it gives depends on nothing else, so that it can be
    computed again, on any number of threads.

    * philox_c1: operands and result have one type, layout included.

    Created by the frontend for dropout with rng="philox"; lowered to linalg.

    ```mlir
    %0 = weft.philox %low, %high, %key : tensor<4x8xi32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[I32]>:$low, RankedTensorOf<[I32]>:$high, RankedTensorOf<[I32]>:$key);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = "$low `,` $high `,` $key attr-dict `:` type($result)";
}
def Weft_CmpOp : Weft_PureOp<"cmp", [SameTypeOperands, Elementwise, InferTypeOpAdaptor]> {
  let summary = "Compare two tensors element by element";
  let description = [{
    result[i...] = lhs[i...] predicate rhs[i...]; NaN is unequal to everything and otherwise
    compares false. lhs, rhs: (i...) of any element type; result: (i...) of i1.

    * cmp_c1: lhs and rhs have one type, layout included.
    * cmp_c2: the result has their shape and layout.

    Created by the frontend; lowered to linalg.

    ```mlir
    %0 = weft.cmp <lt> %a, %b : tensor<4xf32> -> tensor<4xi1>
    ```
  }];
  let arguments = (ins Weft_ComparePredicateAttr:$predicate, Weft_Tensor:$lhs, Weft_Tensor:$rhs);
  let results = (outs Weft_BoolTensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
}
def Weft_SelectOp : Weft_PureOp<"select", [AllTypesMatch<["onTrue", "onFalse", "result"]>, Elementwise]> {
  let summary = "Choose between two tensors element by element";
  let description = [{
    result[i...] = condition[i...] ? onTrue[i...] : onFalse[i...]. condition: (i...) of i1;
    onTrue, onFalse and result: (i...) of any one element type.

    * select_c1: onTrue, onFalse and the result have one type, layout included.
    * select_c2: the condition has the result's shape.
    * select_c3: the condition has the result's layout.

    Created by the frontend; lowered to linalg.

    ```mlir
    %0 = weft.select %c, %a, %b : tensor<4xi1>, tensor<4xf32>
    ```
  }];
  let arguments = (ins Weft_BoolTensor:$condition, Weft_Tensor:$onTrue, Weft_Tensor:$onFalse);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$condition `,` $onTrue `,` $onFalse attr-dict `:` type($condition) `,` type($result)";
  let hasVerifier = 1;
}
def Weft_ConvertOp : Weft_PureOp<"convert", [Elementwise]> {
  let summary = "Convert the element type as torch's Tensor.to does";
  let description = [{
    result[i...] = operand[i...] as the result's element type: floats round to nearest even
    and truncate to integers, integers wrap, and a bool is whether its source is not zero.
    operand, result: (i...).

    * convert_c1: the operand has the result's shape.
    * convert_c2: the operand has the result's layout.

    Created by the frontend and by decompositions (bf16 and f16 compute in f32); lowered to
    linalg.

    ```mlir
    %0 = weft.convert %a : tensor<4xbf16> -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Weft_Tensor:$operand);
  let results = (outs Weft_Tensor:$result);
  let hasFolder = 1;
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

#endif
