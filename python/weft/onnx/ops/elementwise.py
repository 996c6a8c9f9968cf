# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of one element each: arithmetic, comparisons, activations, conversions."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.onnx.ops.integers import ordered, ring
from weft.onnx.table import Node, op
from weft.onnx.values import dtype_of, number

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "HardSwish": F.hardswish,
    "IsNaN": torch.isnan,
    "Log": torch.log,
    "Not": torch.logical_not,
    "Reciprocal": torch.reciprocal,
    "Round": torch.round,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Softsign": F.softsign,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
}
# Since their operator set 7, these broadcast as torch does.
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": ring(torch.add),
    "And": torch.logical_and,
    "BitwiseAnd": ring(torch.bitwise_and),
    "BitwiseOr": ring(torch.bitwise_or),
    "BitwiseXor": ring(torch.bitwise_xor),
    "Equal": ordered(torch.eq),
    "Greater": ordered(torch.gt),
    "GreaterOrEqual": ordered(torch.ge),
    "Less": ordered(torch.lt),
    "LessOrEqual": ordered(torch.le),
    "Mul": ring(torch.mul),
    "Or": torch.logical_or,
    "Sub": ring(torch.sub),
    "Xor": torch.logical_xor,
}


def _enter_unary(name: str, function: Callable[[Tensor], Tensor]) -> None:
    @op(name, since=6 if name in ("Ceil", "Exp", "Floor", "Log", "Sqrt", "Tanh") else 1)
    def rule(node: Node, x: Tensor) -> Tensor:
        return function(x)


def _enter_binary(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    @op(name, since=7)
    def rule(node: Node, a: Tensor, b: Tensor) -> Tensor:
        return function(a, b)

    @op(name, "axis broadcast consumed_inputs")
    def unidirectional(node: Node, a: Tensor, b: Tensor) -> Tensor:
        return function(a, aligned(node, a, b))


def aligned(node: Node, a: Tensor, b: Tensor) -> Tensor:
    """`b` with the dims that operator sets below 7 give it within those of `a`."""
    axis = node.get("axis")
    if not node.get("broadcast", 0) or axis is None:
        return b
    return b.reshape(b.shape + (1,) * (a.ndim - axis % a.ndim - b.ndim))


for _name, _function in _UNARY.items():
    _enter_unary(_name, _function)
for _name, _function in _BINARY.items():
    _enter_binary(_name, _function)


@op("Abs Neg Sign Relu", since=6)
def signed(node: Node, x: Tensor) -> Tensor:
    if node.op in ("Abs", "Sign", "Relu") and not x.dtype.is_signed:
        return torch.sign(x) if node.op == "Sign" else x
    return {"Abs": torch.abs, "Neg": torch.neg, "Sign": torch.sign, "Relu": torch.relu}[node.op](x)


@op("BitwiseNot", since=18)
def bitwise_not(node: Node, x: Tensor) -> Tensor:
    return ring(lambda a, b: torch.bitwise_not(a))(x, x)


@op("Div", since=7)
def div(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return a / b
    if a.dtype == torch.uint64:
        raise node.unsupported("quotients of uint64 are not supported")
    return ring(functools.partial(torch.div, rounding_mode="trunc"))(a, b)


@op("Div", "axis broadcast consumed_inputs")
def div_1(node: Node, a: Tensor, b: Tensor) -> Tensor:
    return div(node, a, aligned(node, a, b))


@op("Mod", "fmod", since=10)
def mod(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == torch.uint64:
        raise node.unsupported("remainders of uint64 are not supported")
    return ring(torch.fmod if node.get("fmod", 0) else torch.remainder)(a, b)


@op("Pow", since=7)
def pow_(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if b.dtype in (torch.uint16, torch.uint32, torch.uint64):
        b = b.to(torch.int64)
    if a.dtype.is_floating_point and not b.dtype.is_floating_point:
        return torch.pow(a, b.to(a.dtype))
    if not a.dtype.is_floating_point and b.dtype.is_floating_point:
        return torch.pow(a.to(torch.float64), b.to(torch.float64)).to(a.dtype)
    return torch.pow(a, b.to(a.dtype))


@op("Pow", "axis broadcast")
def pow_1(node: Node, a: Tensor, b: Tensor) -> Tensor:
    return pow_(node, a, aligned(node, a, b))


@op("BitShift", "direction", since=11)
def bit_shift(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if node.get("direction") == "LEFT":
        return ring(torch.bitwise_left_shift)(a, b)
    if a.dtype == torch.uint64:  # arithmetic in torch: clear the sign's copies
        a, b = a.view(torch.int64), b.view(torch.int64)
        kept = torch.where(b == 0, -1, (1 << (64 - b.clamp(min=1))) - 1)
        return (torch.bitwise_right_shift(a, b) & kept).view(torch.uint64)
    return ring(torch.bitwise_right_shift)(a, b)


@op("IsInf", "detect_negative detect_positive", since=10)
def is_inf(node: Node, x: Tensor) -> Tensor:
    found = torch.zeros_like(x, dtype=torch.bool)
    if node.get("detect_negative", 1):
        found = found | torch.isneginf(x)
    if node.get("detect_positive", 1):
        found = found | torch.isposinf(x)
    return found


@op("Max Min Sum Mean", since=8)
def of_several(node: Node, first: Tensor, *rest: Tensor) -> Tensor:
    functions = {
        "Max": ordered(torch.maximum),
        "Min": ordered(torch.minimum),
        "Sum": torch.add,
        "Mean": torch.add,
    }
    found = functools.reduce(functions[node.op], rest, first)
    return found / (1 + len(rest)) if node.op == "Mean" else found


@op("Max Min Sum Mean", "consumed_inputs")
def of_several_1(node: Node, first: Tensor, *rest: Tensor) -> Tensor:
    return of_several(node, first, *rest)


@op("Where", since=9)
def where(node: Node, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(condition, a, b)


@op("Clip", since=11)
def clip(node: Node, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """The upper bound wins where the bounds cross."""
    if low is not None:
        x = ordered(torch.maximum)(x, low)
    return x if high is None else ordered(torch.minimum)(x, high)


@op("Clip", "min max consumed_inputs")
def clip_1(node: Node, x: Tensor) -> Tensor:
    if "min" in node.attributes:
        x = x.clamp(min=node.get("min"))
    return x.clamp(max=node.get("max")) if "max" in node.attributes else x


# --- activations ---


@op("Celu", "alpha", since=12)
def celu(node: Node, x: Tensor) -> Tensor:
    return F.celu(x, node.get("alpha", 1.0))


@op("Elu", "alpha consumed_inputs")
def elu(node: Node, x: Tensor) -> Tensor:
    return F.elu(x, node.get("alpha", 1.0))


@op("Gelu", "approximate", since=20)
def gelu(node: Node, x: Tensor) -> Tensor:
    return F.gelu(x, approximate=node.get("approximate", "none"))


@op("HardSigmoid", "alpha beta consumed_inputs")
def hard_sigmoid(node: Node, x: Tensor) -> Tensor:
    return (node.get("alpha", 0.2) * x + node.get("beta", 0.5)).clamp(0, 1)


@op("LeakyRelu", "alpha consumed_inputs")
def leaky_relu(node: Node, x: Tensor) -> Tensor:
    return F.leaky_relu(x, node.get("alpha", 0.01))


@op("Mish", since=18)
def mish(node: Node, x: Tensor) -> Tensor:
    return F.mish(x)


@op("PRelu", "consumed_inputs")
def prelu(node: Node, x: Tensor, slope: Tensor) -> Tensor:
    if node.opset < 7 and slope.ndim == 1 and x.ndim > 1 and slope.numel() > 1:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))  # of the channels
    return torch.where(x < 0, x * slope, x)


@op("Selu", "alpha gamma consumed_inputs")
def selu(node: Node, x: Tensor) -> Tensor:
    alpha = node.get("alpha", 1.67326319217681884765625)
    return node.get("gamma", 1.05070102214813232421875) * F.elu(x, alpha)


@op("Shrink", "bias lambd", since=9)
def shrink(node: Node, x: Tensor) -> Tensor:
    bias, bound = node.get("bias", 0.0), node.get("lambd", 0.5)
    zero = torch.zeros_like(x)
    return torch.where(x < -bound, x + bias, torch.where(x > bound, x - bias, zero)).to(x.dtype)


@op("Softplus")
def softplus(node: Node, x: Tensor) -> Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


@op("Swish", "alpha", since=24)
def swish(node: Node, x: Tensor) -> Tensor:
    return x * torch.sigmoid(node.get("alpha", 1.0) * x)


@op("ThresholdedRelu", "alpha")
def thresholded_relu(node: Node, x: Tensor) -> Tensor:
    return torch.where(x > node.get("alpha", 1.0), x, torch.zeros_like(x))


# --- conversions ---


@op("Cast", "round_mode saturate to", since=6)
def cast(node: Node, x: Tensor) -> Tensor:
    """`saturate` and `round_mode` concern float8 alone, which is not supported."""
    return x.to(dtype_of(node.get("to")))


@op("CastLike", "round_mode saturate", since=15)
def cast_like(node: Node, x: Tensor, like: Tensor) -> Tensor:
    return x.to(like.dtype)


@op("Identity", "consumed_inputs")
def identity(node: Node, x: object) -> object:
    return x


@op("Constant", "value value_float value_floats value_int value_ints")
def constant(node: Node) -> Tensor:
    ((name, value),) = node.attributes.items()
    if name == "value":
        return value
    return torch.tensor(value, dtype=torch.float32 if "float" in name else torch.int64)


@op("Dropout", "ratio is_test seed consumed_inputs")
def dropout_1(node: Node, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
    """At inference, which is what it says from operator set 7 on."""
    if node.opset < 7 and not node.get("is_test", 0):
        raise node.unsupported("training is not supported before operator set 12")
    return x, torch.ones_like(x, dtype=torch.bool)


@op("Dropout", "seed", since=12, draws=True)
def dropout(
    node: Node, x: Tensor, ratio: Tensor | None = None, training: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    share = 0.5 if ratio is None else number(ratio)
    if training is None or not number(training) or share == 0:
        return x, torch.ones_like(x, dtype=torch.bool)
    kept = torch.rand_like(x) >= share
    return torch.where(kept, x / (1 - share), torch.zeros_like(x)), kept
