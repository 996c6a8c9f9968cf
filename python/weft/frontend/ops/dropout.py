# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout. PyTorch draws the noise inside the program, so that one seed gives the same masks."""

from __future__ import annotations

import torch

from weft.frontend.asking import lays_out_otherwise
from weft.frontend.dtypes import is_float
from weft.frontend.fallback import Lying, encode_arguments, operand_number
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline, Fallback, Unsupported
from weft.frontend.table import Site, lowers

_DROPOUT = torch.ops.aten.dropout.default


@lowers(
    *("dropout.default", "alpha_dropout.default", "feature_dropout.default"),
    "feature_alpha_dropout.default",
)
def dropout(site: Site, x, p, train):
    if not train or p == 0:
        return x
    if site.target != "aten.dropout.default":
        raise Decline("random")
    return _as_eager(site, x, p)[0]


@lowers("native_dropout.default")
def native_dropout(site: Site, x, p, train):
    """What becomes of `dropout` where torch functionalises a program. Both draw alike."""
    if train is False:
        return x, site.builder.constant(True, torch.bool, x.shape)
    return _as_eager(site, x, p)


def _as_eager(site: Site, x: Value, p: float) -> tuple[Value, Value]:
    if not site.builder.graph.training:
        raise Decline("random")
    if otherwise := lays_out_otherwise(site.node.args[0]):
        raise Unsupported(f"dropout of what {otherwise} lays out otherwise", _location(site))
    return dropped_out(site, x, p, tuple(site.lying.stride()))


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
    lies = strides is None or torch.empty_strided(x.shape, strides, device="meta").is_contiguous()
    ones, operands = b.constant(1, x.dtype, x.shape), []
    arguments = encode_arguments(
        _DROPOUT,
        (ones if lies else Lying(ones, strides), p, True),
        {},
        lambda value: operand_number(operands, value),
    )
    b.fallbacks.append(Fallback(str(_DROPOUT), arguments, "random", _location(site)))
    (noise,) = b.torch_fallback(operands, str(_DROPOUT), arguments, [(x.dtype, x.shape)])
    mask = b.compare("ne", noise, 0)
    scale = torch.ones(1, dtype=x.dtype).div_(1 - p).item()
    return b.binary("mul", x, b.scalar("mul", b.convert(mask, x.dtype), scale)), mask


def _location(site: Site):
    return site.builder.graph.location
