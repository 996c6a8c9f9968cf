# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small calls of every kind of kernel, by element type and size, for test_guard_pages.py.

A kind is a function of sizes that yields calls. Calls of one size do not depend on other sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from guarded import Call

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
NUMBERS = FLOATS + INTEGERS
ALL = [*NUMBERS, torch.bool]
Calls = Iterator[Call]

KINDS: dict[str, Callable[[Sequence[int]], Calls]] = {}


def kind(function: Callable[[Sequence[int]], Calls]) -> Callable[[Sequence[int]], Calls]:
    KINDS[function.__name__] = function
    return function


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small random numbers; integers for integer types."""
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0, 10, shape).to(dtype)


def indices(*shape: int, below: int) -> torch.Tensor:
    return torch.randint(0, max(below, 1), shape)


def call(name: str, function: Callable[..., Any], *args: torch.Tensor) -> Call:
    shapes = ", ".join(f"{str(arg.dtype)[6:]}{list(arg.shape)}" for arg in args)
    return Call(f"{name} of {shapes}", function, args)


@kind
def conversions(sizes):
    """Conversions between all types: in rows of a broadcast, in one run, and transposed."""
    for n in sizes:
        for source in ALL:
            column, row = values(3, 1, dtype=source), values(n, dtype=source)
            square = values(n, 3, dtype=source)
            for target in ALL:
                name = f"to {str(target)[6:]}"
                yield (
                    call(name, lambda a, b, t=target: (a * b).abs().to(t), column, row)
                    if (source.is_floating_point)
                    else call(name, lambda a, b, t=target: (a & b).to(t), column, row)
                )
                yield call(name, lambda x, t=target: x.to(t).reshape(-1), square)
                yield call(name, lambda x, t=target: x.t().contiguous().to(t), square)


@kind
def pointwise(sizes):
    for n in sizes:
        for dtype in NUMBERS:
            x, y = values(2, n, dtype=dtype), values(n, 2, dtype=dtype)
            yield call("sum with a transpose", lambda x, y: x + y.t(), x, y)
            yield call("comparison", lambda x, y: x < y.t(), x, y)
            yield call("choice", lambda x, y: torch.where(x > 3, x, y.t() * 2), x, y)
            yield call("one element", lambda x: x[:1] + x.reshape(-1)[-1:], x)
        for dtype in FLOATS:
            x = values(2, n, dtype=dtype)
            yield call("vector math", lambda x: x.exp() + x.tanh() * x.sin(), x)
            yield call("gelu", lambda x: (F.gelu(x), x.sigmoid() > 0.5), x)


@kind
def reductions(sizes):
    for n in sizes:
        for dtype in NUMBERS:
            x = values(3, n, dtype=dtype)
            yield call("sums", lambda x: (x.sum(1), x.sum(0), x.sum()), x)
            yield call("scans", lambda x: (x.cumsum(1), x.cumsum(0)), x)
            if n:
                yield call("extrema", lambda x: (x.amax(1), x.amin(0), x.argmax(1)), x)
                yield call("arg of columns", lambda x: (x.argmin(0), (x > 2).any(1)), x)
        for dtype in FLOATS:
            x = values(3, n, dtype=dtype)
            yield call("softmax", lambda x: (x.softmax(1), x.log_softmax(0)), x)
            yield call("mean and variance", lambda x: (x.mean(1), x.var(0), x.std(1)), x)
            if n:
                weight = values(n, dtype=dtype)
                yield call("layer norm", lambda x, w: F.layer_norm(x, w.shape, w, w), x, weight)
                yield call("rms norm", lambda x, w: F.rms_norm(x, w.shape, w), x, weight)
                image = values(2, 4, n, dtype=dtype)
                yield call("group norm", lambda x: F.group_norm(x, 2), image)


@kind
def contractions(sizes):
    for position, n in enumerate(sizes):
        other = sizes[(position * 5 + 3) % len(sizes)]
        inner = sizes[(position * 3 + 1) % len(sizes)]
        for dtype in FLOATS:
            x, y = values(other, inner, dtype=dtype), values(inner, n, dtype=dtype)
            yield call("product", lambda x, y: x @ y, x, y)
            yield call("product with a column", lambda x, y: x @ y[:, :1], x, y)
            yield call("row by matrix", lambda x, y: x[:1] @ y, x, y)
            yield call("vector by matrix", lambda x, y: y.t() @ x, values(inner, dtype=dtype), y)
            yield call("transposed product", lambda x, y: F.relu(x @ y.t()), x, y.t().contiguous())
            batch = values(3, inner, 5, dtype=dtype)
            yield call("batched", lambda x, y: y.transpose(1, 2) @ x.t(), x, batch)
            # These are small integers, whose sums are exact: otherwise the order of a sum could
            # change the integer that it is truncated to.
            whole = x.round(), y.round()
            for target in (torch.int8, torch.int16, torch.bfloat16, torch.float64, torch.bool):
                yield call(
                    "product, then another type",
                    lambda x, y, t=target: (x @ y).abs().clamp(max=9).to(t),
                    *whole,
                )
        linear = torch.nn.Linear(inner, n).eval()
        yield call("linear", linear, values(other, inner))
        yield call("linear of one row", linear, values(1, inner))


@kind
def matrix_units(sizes):
    """Of sizes that pay on AMX, where there is one: blocks of 32 rows, lanes and steps, and what is
    left over of each. float32 is split for it only where one asks for that."""
    for n in sizes:
        for dtype, more in ((torch.bfloat16, 64), (torch.float32, 300)):
            m = n + more
            for inner in (n + 64, 96):
                x, y = values(m, inner, dtype=dtype), values(inner, m - 2, dtype=dtype)
                yield call("product", lambda x, y: F.relu(x @ y), x, y)
                yield call("of columns", lambda x, y: x.t() @ y, x.t().contiguous(), y)
                yield call("of both", lambda x, y: x @ y.t(), x, y.t().contiguous())
                batch = values(3, inner, m, dtype=dtype)
                yield call("batched", lambda x, y: y.transpose(1, 2) @ x.t(), x, batch)
            image = values(2, 40, 9, m // 8, dtype=dtype)
            weight = values(m - 2, 40, 3, 3, dtype=dtype)
            yield call("3 by 3", lambda x, w: F.conv2d(x, w, padding=1), image, weight)
            yield call("strided", lambda x, w: F.conv2d(x, w, stride=2), image, weight)


@kind
def convolutions(sizes):
    for n in sizes:
        if n == 0:
            continue
        for dtype in FLOATS:
            channels = min(n, 9)
            x = values(1, channels, 4, n, dtype=dtype)
            yield call("1 by 1", F.conv2d, x, values(n, channels, 1, 1, dtype=dtype))
            dense = values(5, channels, 3, 3, dtype=dtype)
            yield call("3 by 3", lambda x, w: F.conv2d(x, w, padding=1), x, dense)
            yield call("strided", lambda x, w: F.conv2d(x, w, stride=2, padding=1), x, dense)
            one = values(channels, 1, 3, 3, dtype=dtype)
            yield call(
                "depthwise", lambda x, w: F.conv2d(x, w, padding=1, groups=w.shape[0]), x, one
            )
            back = values(channels, 3, 2, 3, dtype=dtype)
            yield call("transposed", lambda x, w: F.conv_transpose2d(x, w, stride=2), x, back)
            line = values(2, channels, n, dtype=dtype)
            yield call(
                "of lines",
                lambda x, w: F.conv1d(x, w, padding=2, dilation=2),
                line,
                one[:, :, 0].expand(-1, channels, -1).contiguous(),
            )
        module = torch.nn.Conv2d(min(n, 16), n, 3, padding=1).eval()
        yield call("of a module", module, values(1, min(n, 16), 6, 7))


@kind
def attentions(sizes):
    attention = F.scaled_dot_product_attention
    for position, n in enumerate(sizes):
        keys = sizes[(position * 5 + 3) % len(sizes)]
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            for depth in (8, 13):
                q, k = values(1, 2, n, depth, dtype=dtype), values(1, 2, keys, depth, dtype=dtype)
                yield call("attention", lambda q, k: attention(q, k, k * 2), q, k)
                yield call("causal attention", lambda q: attention(q, q, q, is_causal=True), q)
                mask = values(n, keys, dtype=torch.bool)
                yield call("masked", lambda q, k, m: attention(q, k, k, m), q, k, mask)


@kind
def lookups(sizes):
    for n in sizes:
        if n == 0:
            continue
        for dtype in ALL:
            x, i = values(n, 3, dtype=dtype), indices(5, below=n)
            wide = values(3, n, dtype=dtype)
            yield call("rows", lambda x, i: x[i], x, i)
            yield call("columns", lambda x, i: x[:, i], wide, i)
            yield call("gather", lambda x, i: x.gather(1, i), wide, indices(3, n, below=n))
            many = indices(n, below=n)
            yield call("rows of rows", lambda x, i: x.index_select(0, i), x, many)
            if dtype == torch.bool:
                yield call("partition", lambda x: x.sort(stable=True, descending=True), wide)
                continue
            yield call(
                "elements of a constant",
                lambda x, i: x + (torch.arange(x.shape[0]) * 7 % 5).to(x.dtype)[i, None],
                x,
                many,
            )
            yield call("scatter", lambda x, i: x.scatter_add(0, i, x), x, indices(n, 3, below=n))
            yield call("index add", lambda x, i: x.index_add(0, i, x[:5]), x, i[: min(n, 5)])
            yield call(
                "sort", lambda x: (*x.sort(dim=1, stable=True), x.argsort(stable=True, dim=0)), wide
            )
            yield call("top", lambda x: x.topk(1, 1)[0], wide)


@kind
def moves(sizes):
    for n in sizes:
        for dtype in ALL:
            x = values(3, n, dtype=dtype)
            yield call("join", lambda x: torch.cat([x, x[:, :5], x.flip(1)], 1), x)
            yield call("steps", lambda x: (x[:, ::2].clone(), x[::2, 1::3].clone()), x)
            yield call("transpose", lambda x: x.t().contiguous(), x)
            yield call("stack", lambda x: torch.stack([x, x.roll(1, 1)], 2), x)
            yield call("pad", lambda x: F.pad(x, (1, 3)), x)
            yield call("permute", lambda x: x[None].permute(2, 1, 0).contiguous(), x)
            yield call("repeat", lambda x: x.repeat(2, 3), x)


@kind
def windows(sizes):
    for n in sizes:
        if n < 3:
            continue
        for dtype in FLOATS:
            x = values(1, 3, 4, n, dtype=dtype)
            yield call("largest", lambda x: F.max_pool2d(x, 3, 2, 1), x)
            yield call("means", lambda x: F.avg_pool2d(x, 2, 1), x)
            yield call(
                "means without padding",
                lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
                x,
            )
            yield call("adaptive", lambda x: F.adaptive_avg_pool2d(x, (2, 2)), x)
            yield call("nearest", lambda x: F.interpolate(x, scale_factor=2), x)
        yield call(
            "bilinear",
            lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
            values(1, 3, 4, n),
        )


@kind
def chains(sizes):
    """Several kernels with memory of the arena between them."""
    for n in sizes:
        if n == 0:
            continue
        for dtype in FLOATS:
            x, w = values(5, n, dtype=dtype), values(n, n, dtype=dtype)
            yield call("layers", lambda x, w: ((x @ w).relu() @ w).softmax(-1) @ w.t(), x, w)
            yield call(
                "sorted layers",
                lambda x, w: ((x @ w).sort(1)[0].to(torch.float32).cumsum(1) > 0).to(torch.uint8),
                x,
                w,
            )
        yield call("recurrent", torch.nn.LSTM(n, 5).eval(), values(3, 2, n))
        if n % 2 == 0:
            encoder = torch.nn.TransformerEncoderLayer(n, 2, 2 * n, batch_first=True).eval()
            yield call("encoder", encoder, values(2, 7, n))
