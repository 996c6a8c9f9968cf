# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops and activations of the frontend against eager PyTorch."""

import math

import pytest
import torch
import torch.nn.functional as F
from frontend_cases import check
from graph_interpreter import run_graph

from weft.frontend import lower

FLOATS = [torch.float32, torch.float64]
SPECIAL = [0.0, -0.0, 1.5, -2.5, 0.5, 3.0, -7.0, 25.0, math.inf, -math.inf, math.nan]

UNARY = [
    *(torch.abs, torch.neg, torch.sign, torch.ceil, torch.floor, torch.round, torch.trunc),
    *(torch.exp, torch.expm1, torch.log, torch.log1p, torch.sqrt, torch.rsqrt, torch.sin),
    *(torch.cos, torch.tan, torch.asin, torch.acos, torch.atan, torch.sinh, torch.cosh),
    *(torch.asinh, torch.acosh, torch.atanh, torch.tanh, torch.sigmoid, torch.erf, torch.erfc),
    *(torch.reciprocal, torch.square, torch.isnan),
    *(torch.isinf, torch.isfinite, torch.logical_not, torch.log2, torch.log10, torch.exp2),
    *(F.relu, F.relu6, F.gelu, F.silu, F.hardswish, F.hardsigmoid, F.hardtanh),
    *(F.leaky_relu, F.rrelu),
    *(F.elu, F.selu, F.celu, F.softplus, F.mish, F.logsigmoid, F.softsign, F.tanhshrink),
    *(F.hardshrink, F.softshrink),
    lambda x: F.gelu(x, approximate="tanh"),
    lambda x: F.elu(x, 0.3),
    lambda x: F.softplus(x, 2.0, 10.0),
    lambda x: F.threshold(x, 0.1, 20.0),
    lambda x: F.hardtanh(x, -2, 3),
    lambda x: x.clamp(-1, 2),
    lambda x: x.clamp(min=0.5),
    lambda x: x.clamp(max=0.5),
    lambda x: F.prelu(x, torch.tensor([0.25], dtype=x.dtype)),
    lambda x: torch.nan_to_num(x),
    lambda x: x.masked_fill(x > 0, -math.inf),
    lambda x: F.glu(x[:10], 0),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", UNARY)
def test_unary(function, dtype):
    check(function, torch.tensor(SPECIAL, dtype=dtype))
    check(function, torch.randn(10, 5, dtype=dtype))


@pytest.mark.parametrize("function", [torch.exp, torch.sigmoid, torch.abs, torch.neg, torch.square])
def test_unary_of_integers(function):
    check(function, torch.tensor([-2, 0, 3]))


BINARY = [
    *(torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.fmod),
    *(torch.remainder, torch.floor_divide, torch.atan2, torch.fmax, torch.fmin),
    torch.copysign,
    *(torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge),
    *(torch.logical_and, torch.logical_or, torch.logical_xor),
    lambda x, y: torch.add(x, y, alpha=2),
    lambda x, y: torch.rsub(x, y),
    lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    lambda x, y: torch.where(x > y, x, y),
    lambda x, y: torch.lerp(x.double(), y.double(), 0.3),
    lambda x, y: torch.addcmul(x, x, y, value=3),
    lambda x, y: torch.clamp(x, min=y),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", BINARY)
@pytest.mark.parametrize(
    "x, y",
    [
        (torch.float32, torch.float32),
        (torch.float64, torch.float32),
        (torch.int64, torch.int64),
        (torch.int32, torch.float32),
        (torch.uint8, torch.int16),
    ],
)
def test_binary(function, x, y):
    lhs = torch.tensor([[7, 3, 9, 12], [8, 1, 0, 5]]).to(x)
    rhs = torch.tensor([2, 3, 4, 5]).to(y)
    check(function, lhs, rhs)
    if x.is_signed and y.is_signed:
        check(function, -lhs, rhs)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.bfloat16])
def test_binary_at_the_edges(dtype):
    values = torch.tensor(SPECIAL, dtype=dtype)
    for function in (torch.remainder, torch.floor_divide, torch.fmod, torch.maximum, torch.atan2):
        if function is not torch.atan2 or dtype != torch.bfloat16:
            check(function, values[:, None], values[None])


PROMOTION = [
    lambda x, ints, zero_dim: x * zero_dim,
    lambda x, ints, zero_dim: ints * 1.5,
    lambda x, ints, zero_dim: ints + True,
    lambda x, ints, zero_dim: ints / 2,
    lambda x, ints, zero_dim: 2 / (ints + 1),
    lambda x, ints, zero_dim: 1 - x,
    lambda x, ints, zero_dim: ints == 2.5,
    lambda x, ints, zero_dim: ints.bool() | (x[0, 0] > 5),
    lambda x, ints, zero_dim: ints.bool() & ints.bool().logical_not(),
    lambda x, ints, zero_dim: x.to(torch.int32).to(torch.bool),
    lambda x, ints, zero_dim: ints.float().type_as(zero_dim),
    lambda x, ints, zero_dim: torch.where(x > 0, x, 0.0),
    lambda x, ints, zero_dim: torch.where(x > 0, 1, zero_dim),
    lambda x, ints, zero_dim: x.bfloat16() * 0.1 + x.bfloat16(),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", PROMOTION)
def test_scalars_and_promotion(function):
    zero_dim = torch.tensor(2.0, dtype=torch.float64)
    check(function, torch.randn(3, 4), torch.arange(5), zero_dim)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5, 4])
@pytest.mark.parametrize("dtype", FLOATS)
def test_powers(exponent, dtype):
    x = torch.rand(6, dtype=dtype) + 0.5
    check(lambda x: x**exponent, x)
    check(lambda x: 2.5 ** (x * exponent), x)


class Remainder(torch.nn.Module):
    def forward(self, x, y):
        return x.remainder(y)


def test_division_by_integer_zero_is_refused():
    seven = torch.tensor([7])
    lowered = lower(torch.export.export(Remainder(), (seven, seven.clone())))
    assert run_graph(lowered.graph, [seven, torch.tensor([4])])[0].item() == 3
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run_graph(lowered.graph, [seven, torch.tensor([0])])


def test_in_place_ops_and_dropout_in_eval():
    def function(x):
        y = x + 1
        y.mul_(2).relu_()
        y[0] = 5
        y[:, 1:3] += x[:, 1:3]
        return F.dropout(y, 0.5, training=False), F.alpha_dropout(y, 0.5, False)

    check(function, torch.randn(3, 4))
