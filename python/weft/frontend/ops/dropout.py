# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout. PyTorch draws the noise inside the program, so that one seed gives the same masks, or
Philox computes them (`rng="philox"`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from weft.frontend import packed
from weft.frontend.builder import Builder
from weft.frontend.dtypes import is_float
from weft.frontend.fallback import Lying, encode_arguments, operand_number
from weft.frontend.graph import Value
from weft.frontend.layouts import strides_in_eager
from weft.frontend.lowered import Decline, Fallback
from weft.frontend.philox import KEY, border
from weft.frontend.table import Site, lowers

_DROPOUT = torch.ops.aten.dropout.default
# What an element of SELU's becomes that is dropped (Klambauer et al. 2017), as ATen rounds it.
_ALPHA = 1.7580993408473766


@lowers("dropout.default")
def dropout(site: Site, x, p, train):
    if not train or p == 0:
        return x
    return _as_eager(site, x, p)[0]


@lowers("native_dropout.default")
def native_dropout(site: Site, x, p, train):
    """What becomes of `dropout` where torch functionalises a program. Both draw alike."""
    if train is False:
        return x, site.builder.constant(True, torch.bool, x.shape)
    return _as_eager(site, x, p)


@lowers("feature_dropout.default", "alpha_dropout.default", "feature_alpha_dropout.default")
def other_dropout(site: Site, x: Value, p, train):
    """Dropout of whole channels, or with SELU's lower border in place of zero."""
    if not train or p == 0:
        return x
    b = site.builder
    if not may_draw(b) or p == 1 or not x.size or not is_float(x.dtype):
        raise Decline("random")
    of_channels, towards_alpha = "feature" in site.target, "alpha" in site.target
    if of_channels:
        shape, strides = (*x.shape[:2], *[1] * (x.rank - 2)), None
    else:
        shape, strides = x.shape, _strides_in_eager(site)
    if b.graph.rng == "philox":
        mask = _mask(site, shape, 1 - p)
    else:
        mask = _drawn(site, p, x.dtype, shape, strides)
    mask = b.broadcast(mask, x.shape)
    if not towards_alpha:
        return _scaled(b, x, mask, p)
    noise = b.convert(mask, x.dtype)
    scale = 1 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    below = b.scalar("add", noise, -1)
    below = b.scalar("mul", below, _ALPHA * scale)
    below = b.scalar("add", below, _ALPHA * scale * p)
    return b.binary("add", b.binary("mul", x, b.scalar("mul", noise, scale)), below)


@lowers("bernoulli.p")
def bernoulli(site: Site, x: Value, p=0.5, generator=None):
    if site.builder.graph.rng != "philox" or generator is not None or not x.size:
        raise Decline("random")
    return site.builder.convert(_mask(site, x.shape, p), x.dtype)


def may_draw(b: Builder) -> bool:
    """Whether masks are drawn in graphs like this one."""
    return b.graph.training or b.graph.rng == "philox"


def _as_eager(site: Site, x: Value, p: float) -> tuple[Value, Value]:
    if not may_draw(site.builder):
        raise Decline("random")
    if site.builder.graph.rng == "philox":
        return dropped_out(site, x, p)
    return dropped_out(site, x, p, _strides_in_eager(site))


def _strides_in_eager(site: Site) -> tuple[int, ...]:
    """The strides in eager execution of the operand, in whose order numbers are drawn."""
    return strides_in_eager(site.node.args[0])


def dropped_out(
    site: Site, x: Value, p: float, strides: tuple[int, ...] | None = None
) -> tuple[Value, Value]:
    """x * noise / (1 - p) and whether the noise is 1, as ATen's `_dropout_impl` (Dropout.cpp) with
    the noise that it draws: PyTorch drops ones out.

    strides: of x in eager mode, in whose order numbers are drawn; None for row-major. What is kept
    of the noise is a mask: all that the backward has to save.
    """
    b = site.builder
    if not is_float(x.dtype):
        raise Decline(f"dropout of {x.dtype}")
    if p == 1 or not x.size:
        return b.scalar("mul", x, 0), b.constant(False, torch.bool, x.shape)
    if b.graph.rng == "philox":
        mask = _mask(site, x.shape, 1 - p)
        return _scaled(b, x, mask, p), mask
    mask = _drawn(site, p, x.dtype, x.shape, strides)
    return _scaled(b, x, mask, p), mask


def rows_dropped_out(site: Site, x: Value, p: float, lengths: Value) -> Value:
    """As `dropped_out`, of the rows of packed sequences: noise is drawn for as many as there are.

    x: (steps, batch, ...). lengths: of the sequences, in descending order.
    """
    if p == 1 or not x.size:
        return dropped_out(site, x, p)[0]
    if site.builder.graph.rng == "philox":
        raise Decline("masks of rows whose number depends on data")
    ones = site.builder.constant(1, x.dtype, x.shape)
    mask = _kept(site, packed.dropout, (ones, lengths, p), x)
    return _scaled(site.builder, x, mask, p)


def _drawn(
    site: Site,
    p: float,
    dtype: torch.dtype,
    shape: Sequence[int],
    strides: tuple[int, ...] | None,
) -> Value:
    """Noise where PyTorch keeps ones with these strides, or None for row-major. Every kind of
    dropout draws its noise alike."""
    lies = strides is None or torch.empty_strided(shape, strides, device="meta").is_contiguous()
    ones = site.builder.constant(1, dtype, shape)
    return _kept(site, _DROPOUT, (ones if lies else Lying(ones, strides), p, True), ones)


def _kept(site: Site, op: torch._ops.OpOverload, args: tuple, like: Value) -> Value:
    """Where `op`, which PyTorch runs, leaves ones of the shape and type of those of `like`."""
    b, operands = site.builder, []
    arguments = encode_arguments(op, args, {}, lambda value: operand_number(operands, value))
    b.fallbacks.append(Fallback(str(op), arguments, "random", _location(site)))
    (noise,) = b.torch_fallback(operands, str(op), arguments, [(like.dtype, like.shape)])
    return b.compare("ne", noise, 0)


def _scaled(b: Builder, x: Value, mask: Value, p: float) -> Value:
    scale = torch.ones(1, dtype=x.dtype).div_(1 - p).item()
    return b.binary("mul", x, b.scalar("mul", b.convert(mask, x.dtype), scale))


def _mask(site: Site, shape: Sequence[int], keep: float) -> Value:
    """The mask, drawn by Philox: philox.py says by which counter and key."""
    b, graph = site.builder, site.builder.graph
    key, stream = _key(site)
    stream = b.scalar("add", stream, graph.draws)
    graph.draws += 1
    if (limit := border(keep)) == 1 << 31:
        return b.constant(True, torch.bool, shape)
    place = b.constant(0, torch.int32, shape)
    for dim, size in enumerate(shape):  # each factor is a size, which a symbol may be
        place = b.scalar("mul", place, _wrapped(size))
        place = b.binary("add", place, b.iota(torch.int32, shape, dim))
    bits = b.philox(place, b.broadcast(stream, shape), b.broadcast(key, shape))
    return b.compare("lt", bits, limit)


def _key(site: Site) -> tuple[Value, Value]:
    """The key and the second word of the counter, (1,) each, drawn once in a call."""
    b, graph = site.builder, site.builder.graph
    # A rule that declined takes back what it has emitted.
    if not any(graph.philox_key is value for node in graph.nodes for value in node.results):
        op, args, kwargs = KEY
        arguments = encode_arguments(op, args, kwargs, lambda value: None)
        b.fallbacks.append(Fallback(str(op), arguments, "random", _location(site)))
        types = [(torch.int32, (2,))]
        (graph.philox_key,) = b.torch_fallback([], str(op), arguments, types)
    return tuple(b.slice(graph.philox_key, 0, number, number + 1) for number in range(2))


def _wrapped(number: int) -> int:
    """The number wrapped to an i32."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _location(site: Site):
    return site.builder.graph.location
