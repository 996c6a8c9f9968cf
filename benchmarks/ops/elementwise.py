# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An op of each element, or of a few operands' elements."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from benchmarks.ops.case import Op, flags, integers, normal, op, uniform

_ANY = (
    "abs neg sign floor round trunc frac exp exp2 expm1 sin cos tan tanh sinh cosh atan asinh "
    "sigmoid erf erfc i0 relu isnan"
).split()
_POSITIVE = "sqrt rsqrt reciprocal log log2 log1p lgamma digamma".split()
_UNIT = "asin acos atanh erfinv logit".split()
_ACTIVATIONS = "gelu silu elu leaky_relu hardswish relu6 softplus mish logsigmoid".split()
_TWO = (
    "add sub mul div maximum minimum atan2 hypot fmod remainder copysign logaddexp lt eq"
).split()


def ops() -> Iterator[Op]:
    shape = (256, 1024)
    for name in _ANY:
        yield op("elementwise", f"{name} 256x1024", getattr(torch, name), normal(*shape))
    for name in _POSITIVE:
        yield op("elementwise", f"{name} 256x1024", getattr(torch, name), uniform(0.1, 9.0, *shape))
    for name in _UNIT:
        call = torch.special.logit if name == "logit" else getattr(torch, name)
        yield op("elementwise", f"{name} 256x1024", call, uniform(0.01, 0.99, *shape))
    for name in _ACTIVATIONS:
        yield op("elementwise", f"{name} 256x1024", getattr(F, name), normal(*shape))
    for name in _TWO:
        two = (normal(*shape), uniform(0.5, 2.0, *shape))
        yield op("elementwise", f"{name} 256x1024", getattr(torch, name), *two)
    yield from _others()
    yield from _types()


def _others() -> Iterator[Op]:
    def add(name: str, call, *args) -> Op:
        return op("elementwise", name, call, *args)

    x, y, z = normal(256, 1024), normal(256, 1024), normal(256, 1024)
    yield add("x + 1 of one element", lambda x: x + 1, normal(1))
    yield add("x + 1 64x64", lambda x: x + 1, normal(64, 64))
    yield add("exp 64x64", torch.exp, normal(64, 64))
    yield add("gelu 16x768", F.gelu, normal(16, 768))
    yield add("x * 2 2048x2048", lambda x: x * 2, normal(2048, 2048))
    yield add("exp 2048x1024", torch.exp, normal(2048, 1024))
    yield add("add of a row 256x1024", operator.add, x, normal(1024))
    yield add("add of a column 256x1024", operator.add, x, normal(256, 1))
    yield add("x ** 2 256x1024", lambda x: x**2, x)
    yield add("x ** 3 256x1024", lambda x: x**3, x)
    yield add("x ** 1.7 256x1024", lambda x: x**1.7, uniform(0.1, 9.0, 256, 1024))
    yield add("x ** y 256x1024", operator.pow, uniform(0.1, 4.0, 256, 1024), y)
    yield add("gelu tanh 256x1024", lambda x: F.gelu(x, approximate="tanh"), x)
    yield add("clamp 256x1024", lambda x: x.clamp(-0.5, 0.5), x)
    yield add("nan_to_num 256x1024", torch.nan_to_num, x)
    yield add("lerp 256x1024", lambda x, y: torch.lerp(x, y, 0.3), x, y)
    yield add("addcmul 256x1024", torch.addcmul, x, y, z)
    yield add("addcdiv 256x1024", torch.addcdiv, x, y, uniform(0.5, 2.0, 256, 1024))
    yield add("where 256x1024", torch.where, flags(256, 1024), x, y)
    yield add("masked_fill 256x1024", lambda x, m: x.masked_fill(m, 0.0), x, flags(256, 1024))
    yield add("logical_and 256x1024", torch.logical_and, flags(256, 1024), flags(256, 1024))
    yield add("~ 256x1024 bool", operator.invert, flags(256, 1024))
    yield add("xlogy 256x1024", torch.xlogy, x, uniform(0.1, 9.0, 256, 1024))
    yield add(
        "add of a transpose 512x512", lambda x, y: x + y.T, normal(512, 512), normal(512, 512)
    )


def _types() -> Iterator[Op]:
    for dtype, short in ((torch.float64, "f64"), (torch.bfloat16, "bf16")):
        for name in ("add", "mul"):
            two = (normal(256, 1024, dtype=dtype), normal(256, 1024, dtype=dtype))
            yield op("types", f"{name} 256x1024 {short}", getattr(torch, name), *two)
        for name in ("exp", "tanh", "sigmoid", "sqrt", "log"):
            made = uniform(0.1, 9.0, 256, 1024, dtype=dtype)
            yield op("types", f"{name} 256x1024 {short}", getattr(torch, name), made)
        yield op("types", f"gelu 256x1024 {short}", F.gelu, normal(256, 1024, dtype=dtype))
    few, more = ("add", "mul", "eq"), ("floor_divide", "remainder", "bitwise_and", "maximum")
    for dtype, short, names in (
        (torch.int64, "i64", few + more),
        (torch.int32, "i32", few),
        (torch.uint8, "u8", few),
    ):
        made = integers(1, 50, 256, 1024, dtype=dtype)
        for name in names:
            yield op("types", f"{name} 256x1024 {short}", getattr(torch, name), made, made)
    wide = integers(-50, 50, 256, 1024)
    yield op("types", "abs 256x1024 i64", torch.abs, wide)
    yield op("types", "<< 3 256x1024 i64", lambda x: x << 3, wide)
    yield op("types", "i64 to f32 256x1024", lambda x: x.float(), wide)
    x = normal(256, 1024)
    yield op("types", "f32 to bf16 256x1024", lambda x: x.bfloat16(), x)
    yield op("types", "f32 to f64 256x1024", lambda x: x.double(), x)
    yield op("types", "f32 to i32 256x1024", lambda x: x.int(), x)
    half = normal(256, 1024, dtype=torch.bfloat16)
    yield op("types", "bf16 to f32 256x1024", lambda x: x.float(), half)
