# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import torch
from torch.utils._python_dispatch import _disable_current_modes

from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.transposed_conv import Dim, transposed_conv
from weft.frontend.table import Site, dim_of, lowers


def ask_torch(function: Callable, *operands: Value | None) -> None:
    """Declines element types that PyTorch has no kernel for, so that it says so itself.

    function: of tensors with the ranks and types of `operands`, every size 2: products of
    single elements go other ways.
    """
    kinds = tuple((x.dtype, x.rank) if x is not None else None for x in operands)
    if refusal := _refusal(function, kinds):
        raise Decline(f"PyTorch refuses the element types: {refusal}")


@lru_cache
def _refusal(function: Callable, kinds: tuple[tuple[torch.dtype, int] | None, ...]) -> str | None:
    with _disable_current_modes(), torch._C._DisableAutocast(), torch.no_grad():
        tensors = [kind and torch.ones([2] * kind[1], dtype=kind[0]) for kind in kinds]
        try:
            function(*tensors)
        except (RuntimeError, NotImplementedError) as error:
            return str(error).partition("\n")[0]
    return None


def _convolve(
    transposed: bool, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> None:
    zeros, ones = [0] * (weight.dim() - 2), [1] * (weight.dim() - 2)
    torch.convolution(x, weight, bias, ones, zeros, ones, transposed, zeros, 1)


_CONVOLUTION = partial(_convolve, False)
_TRANSPOSED_CONVOLUTION = partial(_convolve, True)


@lowers("linear.default")
def linear(site: Site, x: Value, weight: Value, bias: Value | None = None):
    ask_torch(torch.nn.functional.linear, x, weight, bias)
    b = site.builder
    if bias is not None and not x.shape[-1] and x.rank in (2, 3):
        return b.broadcast(bias, site.shape)  # as addmm has it
    product = b.dot(x, weight, ([x.rank - 1], [weight.rank - 1]))
    if bias is None:
        return product
    return b.binary("add", product, b.broadcast(bias, product.shape))


@lowers("mm.default", "bmm.default", "matmul.default", "mv.default", "dot.default")
def matmul(site: Site, x: Value, y: Value):
    return _matmul(site, x, y)


def _matmul(site: Site, x: Value, y: Value, dtype: torch.dtype | None = None) -> Value:
    """dtype: of the product; that of the operands, if none is given."""
    ask_torch(torch.matmul, x, y)
    b = site.builder
    inner_y = max(y.rank - 2, 0)
    if y.rank <= 2:
        return b.dot(x, y, ([x.rank - 1], [inner_y]), dtype=dtype)
    if x.rank == 1:
        return b.dot(y, x, ([inner_y], [0]), dtype=dtype)
    batch = site.shape[:-2]
    x = b.broadcast(x, [*batch, *x.shape[-2:]])
    y = b.broadcast(y, [*batch, *y.shape[-2:]])
    n = len(batch)
    return b.dot(x, y, ([n + 1], [n]), (range(n), range(n)), dtype)


@lowers("addmm.default", "baddbmm.default", "addmv.default")
def addmm(site: Site, added: Value, x: Value, y: Value, beta=1, alpha=1):
    """As in BLAS, what is multiplied by zero is not read: NaN and infinities do not count; nor is a
    product of nothing added, which would take the sign of zeros. Half precision is scaled and added
    in float32 and rounded once; sums without a factor the kernel of the product adds like that."""
    b = site.builder
    dtype = site.dtype if alpha == 1 and beta == 1 else opmath(site.dtype)
    terms = []
    if x.shape[-1] and (alpha != 0 or site.target == "aten.baddbmm.default"):
        terms.append((alpha, _matmul(site, x, y, dtype)))
    if beta != 0:
        terms.append((beta, site.operand(added, dtype)))
    scaled = [term if factor == 1 else b.scalar("mul", term, factor) for factor, term in terms]
    if not scaled:
        return b.constant(0, site.dtype, site.shape)
    return site.finish(scaled[0] if len(scaled) == 1 else b.binary("add", *scaled))


@lowers("addbmm.default")
def addbmm(site: Site, added: Value, x: Value, y: Value, beta=1, alpha=1):
    """The sum of a batch's products as one product, whose rows are as long as all of theirs
    together."""
    b = site.builder
    rows = b.transpose(x, [1, 0, 2])
    rows = b.reshape(rows, [x.shape[1], x.shape[0] * x.shape[2]])
    columns = b.reshape(y, [y.shape[0] * y.shape[1], y.shape[2]])
    return addmm(site, added, rows, columns, beta, alpha)


@lowers("bilinear.default")
def bilinear(site: Site, x: Value, y: Value, weight: Value, bias: Value | None = None):
    """x (..., i), y (..., j), weight (o, i, j): all sums over i first, by one product."""
    b, (_, i, j) = site.builder, weight.shape
    x, y, weight = (b.convert(each, opmath(site.dtype)) for each in (x, y, weight))
    rows = b.reshape(x, [x.size // max(i, 1), i])
    parts = b.dot(rows, b.transpose(weight, [1, 0, 2]), ([1], [0]))
    others = b.reshape(y, [rows.shape[0], 1, j])
    products = b.binary("mul", parts, b.broadcast(others, parts.shape))
    total = b.reshape(b.reduce("sum", products, [2]), site.shape)
    if bias is not None:
        total = b.binary("add", total, b.broadcast(b.convert(bias, total.dtype), site.shape))
    return site.finish(total)


@lowers("addr.default")
def addr(site: Site, added: Value, x: Value, y: Value, beta=1, alpha=1):
    """The outer product. The factor is multiplied with x, as its product with y may be beyond the
    type's range."""
    if site.dtype == torch.bool or site.dtype != opmath(site.dtype):
        raise Decline(f"addr of {site.dtype}")
    b = site.builder
    x, y = b.scalar("mul", b.convert(x, site.dtype), alpha), b.convert(y, site.dtype)
    product = b.binary("mul", b.along(x, 0, site.shape), b.along(y, 1, site.shape))
    if beta == 0:
        return product
    return b.binary("add", b.scalar("mul", site.operand(added, site.dtype), beta), product)


@lowers("linalg_cross.default")
def cross(site: Site, x: Value, y: Value, dim: int = -1):
    """The difference of two products, of which PyTorch's kernel rounds the second one alone."""
    if site.dtype not in (torch.float32, torch.float64):
        raise Decline(f"cross of {site.dtype}")
    b, dim = site.builder, dim_of(dim, len(site.shape))
    x, y = site.operand(x, site.dtype), site.operand(y, site.dtype)

    def turned(z: Value, by: int) -> Value:
        return b.concat([b.slice(z, dim, by, 3), b.slice(z, dim, 0, by)], dim)

    less = b.unary("neg", b.binary("mul", turned(x, 2), turned(y, 1)))
    return b.fma(turned(x, 1), turned(y, 2), less)


@lowers("outer.default", "ger.default")
def outer(site: Site, x: Value, y: Value):
    b = site.builder
    x, y = b.convert(x, site.dtype), b.convert(y, site.dtype)
    return b.binary("mul", b.along(x, 0, site.shape), b.along(y, 1, site.shape))


@lowers("conv1d.default", "conv2d.default", "conv3d.default")
def conv(site: Site, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    n = weight.rank - 2
    padding = _spread(padding, n)
    return _conv(site, x, weight, bias, stride, (padding, padding), dilation, groups)


@lowers("conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv_padding(site: Site, x, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
    totals = [0] * (weight.rank - 2)
    if padding == "same":
        spread = _spread(dilation, len(totals))
        totals = [d * (k - 1) for d, k in zip(spread, weight.shape[2:])]
    low = [total // 2 for total in totals]
    high = [total - before for total, before in zip(totals, low)]
    return _conv(site, x, weight, bias, stride, (low, high), dilation, groups)


@lowers("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(
    site: Site, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """The transposed convolution. The sizes of the result, and so output_padding, are those of the
    call."""
    n = weight.rank - 2
    if x.rank == n + 1:
        x = site.builder.reshape(x, [1, *x.shape])
    ask_torch(_TRANSPOSED_CONVOLUTION, x, weight, bias)
    geometry = zip(
        *(x.shape[2:], weight.shape[2:], site.shape[-n:]),
        *(_spread(stride, n), _spread(padding, n), _spread(dilation, n)),
    )
    dims = [Dim(*along) for along in geometry]
    result = transposed_conv(site.builder, x, weight, bias, dims, groups)
    return site.builder.reshape(result, site.shape)


@lowers("convolution.default")
def convolution(
    site: Site, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups
):
    if transposed:
        return conv_transpose(
            site, x, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return conv(site, x, weight, bias, stride, padding, dilation, groups)


def _conv(site: Site, x: Value, weight: Value, bias, stride, padding, dilation, groups) -> Value:
    b, n = site.builder, weight.rank - 2
    if 0 in site.shape:  # of no channels torch makes no channels, whatever the weight says
        return b.constant(0, site.dtype, site.shape)
    if x.rank == n + 1:
        x = b.reshape(x, [1, *x.shape])
    ask_torch(_CONVOLUTION, x, weight, bias)
    result = b.conv(x, weight, _spread(stride, n), *padding, _spread(dilation, n), groups)
    if bias is not None:
        result = b.binary("add", result, b.along(bias, 1, result.shape))
    return b.reshape(result, site.shape)


def _spread(value: int | Sequence[int], n: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * n if len(values) == 1 else values
