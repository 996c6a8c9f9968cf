# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers inside a program: pairs of reals, which the dialect has.

What moves elements or is linear is done to both parts by the rule for reals; the rest has rules
here. An op that has neither is run by PyTorch on pairs joined in memory as `torch.view_as_complex`
takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import TABLE, Rule, Site, entering

REAL_OF = {torch.complex64: torch.float32, torch.complex128: torch.float64}

_RULES: dict[str, Rule] = {}

# Rules for reals that serve both parts.
_EACH_PART = (
    *("view.default", "reshape.default", "_unsafe_view.default", "unsqueeze.default"),
    *("squeeze.default", "squeeze.dim", "squeeze.dims", "flatten.using_ints", "unflatten.int"),
    *("view_as.default", "reshape_as.default", "expand.default", "expand_as.default"),
    *("permute.default", "transpose.int", "t.default", "slice.Tensor", "narrow.default"),
    *("select.int", "unbind.int", "split.Tensor", "split_with_sizes.default", "chunk.default"),
    *("clone.default", "contiguous.default", "detach.default", "alias.default"),
    *("index_select.default", "index.Tensor", "gather.default", "roll.default", "flip.default"),
    *("repeat.default", "diagonal.default", "tril.default", "triu.default"),
    *("neg.default", "sum.default", "sum.dim_IntList", "mean.default", "mean.dim"),
    *("cumsum.default", "swapaxes.default", "swapdims.default", "numpy_T.default", "mT.default"),
    *("broadcast_to.default", "ravel.default", "tensor_split.sections", "take_along_dim.default"),
)


@dataclass(frozen=True)
class Pair:
    """A tensor of complex numbers. Both parts have its shape and one type."""

    real: Value
    imag: Value


def _pairs(*targets: str) -> Callable[[Rule], Rule]:
    return entering(_RULES, targets)


def shown_real(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as graphs know it: complex numbers along a last dim of two."""
    return torch.view_as_real(tensor) if tensor.dtype in REAL_OF else tensor


def lower_pairs(
    op: torch._ops.OpOverload, site: Site, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """The results of a call on, or giving, complex numbers: pairs where these are complex.

    Raises: Decline, if there is no rule.
    """
    if any(each.dtype == torch.complex32 for each in site.results):
        raise Decline("complex numbers of half precision")
    rule = _RULES.get(str(op))
    if rule is None:
        raise Decline(f"no rule for complex numbers in {op}")
    results = rule(
        replace(site, results=[_real_like(each) for each in site.results]), *args, **kwargs
    )
    return results if isinstance(results, tuple) else (results,)


def _real_like(tensor: torch.Tensor) -> torch.Tensor:
    """A meta tensor with the type of the parts."""
    dtype = REAL_OF.get(tensor.dtype, tensor.dtype)
    return torch.empty(tensor.shape, dtype=dtype, device="meta")


def join(builder: Builder, pair: Pair) -> Value:
    """As `torch.view_as_real` gives it: the parts along a last dim of two."""
    parts = [builder.reshape(part, (*part.shape, 1)) for part in (pair.real, pair.imag)]
    return builder.concat(parts, pair.real.rank)


def split(builder: Builder, joined: Value) -> Pair:
    dim = joined.rank - 1
    parts = (builder.slice(joined, dim, i, i + 1) for i in range(2))
    return Pair(*(builder.reshape(part, joined.shape[:-1]) for part in parts))


def _each_part(site: Site, *args: Any, **kwargs: Any) -> Any:
    rule = TABLE[site.target]

    def of(part: str) -> Any:
        chosen = pytree.tree_map_only(Pair, lambda pair: getattr(pair, part), (args, kwargs))
        return rule(site, *chosen[0], **chosen[1])

    real, imag = of("real"), of("imag")
    if isinstance(real, tuple):
        return tuple(r if r is None else Pair(r, i) for r, i in zip(real, imag))
    return Pair(real, imag)


_pairs(*_EACH_PART)(_each_part)


# --- parts ---


@_pairs("real.default")
def real(site: Site, x: Pair):
    return x.real


@_pairs("imag.default")
def imag(site: Site, x: Pair):
    return x.imag


@_pairs("view_as_real.default", "view_as_real_copy.default")
def view_as_real(site: Site, x: Pair):
    return join(site.builder, x)


@_pairs("view_as_complex.default", "view_as_complex_copy.default")
def view_as_complex(site: Site, x: Value):
    return split(site.builder, x)


@_pairs("complex.default")
def complex_(site: Site, x: Value, y: Value):
    return Pair(site.operand(x, site.dtype), site.operand(y, site.dtype))


@_pairs("polar.default")
def polar(site: Site, size: Value, angle: Value):
    b = site.builder
    size, angle = site.operand(size, site.dtype), site.operand(angle, site.dtype)
    return Pair(*(b.binary("mul", size, b.unary(f, angle)) for f in ("cos", "sin")))


@_pairs("conj.default", "_conj.default", "conj_physical.default", "_conj_physical.default")
def conj(site: Site, x: Pair):
    return Pair(x.real, site.builder.unary("neg", x.imag))


@_pairs("resolve_conj.default", "resolve_neg.default", "conj_copy.default", "lift_fresh.default")
def same(site: Site, x: Pair):
    return x


@_pairs("abs.default")
def magnitude(site: Site, x: Pair):
    return TABLE["aten.hypot.default"](site, x.real, x.imag)


@_pairs("angle.default")
def angle(site: Site, x: Pair):
    return site.builder.binary("atan2", x.imag, x.real)


# --- arithmetic ---


def _operand(site: Site, x: Any) -> Pair:
    """A tensor or number as complex numbers of the result's type and shape."""
    if isinstance(x, Pair):
        parts: tuple[Any, Any] = (x.real, x.imag)
    elif isinstance(x, complex):
        parts = (x.real, x.imag)
    else:
        parts = (x, 0.0)
    return Pair(*(site.operand(part, site.dtype) for part in parts))


def _scaled(site: Site, x: Pair, alpha: Any) -> Pair:
    if isinstance(alpha, complex):
        raise Decline("a complex factor of a term")
    if alpha == 1:
        return x
    return Pair(*(site.builder.scalar("mul", part, alpha) for part in (x.real, x.imag)))


@_pairs("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar")
def add(site: Site, x: Any, y: Any, alpha: Any = 1):
    kind = site.target.split(".")[1]
    x, y = _operand(site, x), _scaled(site, _operand(site, y), alpha)
    b = site.builder
    return Pair(b.binary(kind, x.real, y.real), b.binary(kind, x.imag, y.imag))


def _product(b: Builder, x: Pair, y: Pair, multiply: Callable[[Value, Value], Value]) -> Pair:
    straight = b.binary("sub", multiply(x.real, y.real), multiply(x.imag, y.imag))
    crossed = b.binary("add", multiply(x.real, y.imag), multiply(x.imag, y.real))
    return Pair(straight, crossed)


@_pairs("mul.Tensor", "mul.Scalar")
def mul(site: Site, x: Any, y: Any):
    b = site.builder
    x, y = _operand(site, x), _operand(site, y)
    return _product(b, x, y, lambda one, other: b.binary("mul", one, other))


@_pairs("square.default")
def square(site: Site, x: Pair):
    return mul(site, x, x)


@_pairs("exp.default")
def exp(site: Site, x: Pair):
    b = site.builder
    size = b.unary("exp", x.real)
    return Pair(*(b.binary("mul", size, b.unary(f, x.imag)) for f in ("cos", "sin")))


def _as_pair(b: Builder, x: Pair | Value) -> Pair:
    return x if isinstance(x, Pair) else Pair(x, b.constant(0, x.dtype, x.shape))


@_pairs("matmul.default", "mm.default", "bmm.default", "mv.default", "dot.default")
def matmul(site: Site, x: Any, y: Any):
    b, rule = site.builder, TABLE[site.target]
    return _product(b, _as_pair(b, x), _as_pair(b, y), lambda one, other: rule(site, one, other))


@_pairs("where.self")
def where(site: Site, condition: Value, x: Any, y: Any):
    rule, x, y = TABLE[site.target], _operand(site, x), _operand(site, y)
    return Pair(rule(site, condition, x.real, y.real), rule(site, condition, x.imag, y.imag))


@_pairs("cat.default", "concat.default", "stack.default")
def joined(site: Site, tensors: Sequence[Any], dim: int = 0):
    pairs = [_as_pair(site.builder, each) for each in tensors]
    rule = TABLE[site.target]
    return Pair(rule(site, [p.real for p in pairs], dim), rule(site, [p.imag for p in pairs], dim))


# --- making ---


@_pairs("zeros.default", "zeros_like.default", "new_zeros.default")
def zeros(site: Site, *_: Any, **__: Any):
    return _operand(site, 0.0)


@_pairs("ones.default", "ones_like.default", "new_ones.default")
def ones(site: Site, *_: Any, **__: Any):
    return _operand(site, 1.0)


@_pairs("full.default", "full_like.default")
def full(site: Site, _: Any, number: Any, **__: Any):
    return _operand(site, number)


# --- types ---


@_pairs("to.dtype", "to.dtype_layout", "_to_copy.default", "to.device")
def to(site: Site, x: Any, *_: Any, **__: Any):
    """From reals or between complex types; to reals PyTorch warns of what is discarded."""
    if not site.node.meta["val"].is_complex():
        raise Decline("a conversion that discards an imaginary part")
    return _operand(site, x)
