# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex numbers inside a program: pairs of reals, which the dialect has.

What moves elements or is linear is done to both parts by the rule for reals; the rest has rules
here. An op that has neither is run by PyTorch on pairs joined in memory as `torch.view_as_complex`
takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.table import TABLE, Rule, Site, entering

REAL_OF = {torch.complex64: torch.float32, torch.complex128: torch.float64}
_COMPLEX_OF = {real: own for own, real in REAL_OF.items()}

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
    *("view_copy.default", "slice_copy.Tensor", "select_copy.int", "permute_copy.default"),
    *("transpose_copy.int", "t_copy.default", "expand_copy.default", "unsqueeze_copy.default"),
    *("squeeze_copy.default", "squeeze_copy.dim", "squeeze_copy.dims", "unbind_copy.int"),
    *("split_copy.Tensor", "split_with_sizes_copy.default", "narrow_copy.default"),
    *("lift_fresh_copy.default", "_reshape_copy.default", "repeat_interleave.self_int"),
    *("slice_scatter.default", "select_scatter.default", "diagonal_scatter.default"),
    *("index_copy.default", "index_put.default", "_unsafe_index_put.default", "index_add.default"),
    *("scatter.src", "scatter_add.default", "unfold.default"),
)


@dataclass(frozen=True)
class Pair:
    """A tensor of complex numbers. Both parts have its shape and one type."""

    real: Value
    imag: Value

    @property
    def dtype(self) -> torch.dtype:
        return _COMPLEX_OF[self.real.dtype]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.real.shape


def for_pairs(*targets: str) -> Callable[[Rule], Rule]:
    return entering(_RULES, targets)


def shown_real(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as graphs know it: complex numbers along a last dim of two."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.dtype in REAL_OF else tensor


def shown_complex(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The inverse, where `like` is complex."""
    return torch.view_as_complex(tensor) if like.dtype in REAL_OF else tensor


def lower_pairs(
    op: torch._ops.OpOverload, site: Site, *args: Any, **kwargs: Any
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
    results = results if isinstance(results, tuple) else (results,)
    for found, expected in zip(results, site.results, strict=True):
        if isinstance(found, Pair) is not (expected.dtype in REAL_OF):
            raise Decline("a conversion that discards an imaginary part")
    return results


def _real_like(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor without memory, of the type of the parts, on the device of the whole."""
    return tensor.new_empty(tensor.shape, dtype=REAL_OF.get(tensor.dtype, tensor.dtype))


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
    given = pytree.tree_leaves((args, kwargs))
    if not any(isinstance(each, Pair) for each in given):
        raise Decline("complex numbers made of real ones")
    if any(isinstance(each, complex) for each in given):
        raise Decline("a complex number among its arguments")

    def of(part: str) -> Any:
        chosen = pytree.tree_map_only(Pair, lambda pair: getattr(pair, part), (args, kwargs))
        return rule(site, *chosen[0], **chosen[1])

    real, imag = of("real"), of("imag")
    if isinstance(real, tuple):
        return tuple(r if r is None else Pair(r, i) for r, i in zip(real, imag))
    return Pair(real, imag)


for_pairs(*_EACH_PART)(_each_part)


# --- parts ---


@for_pairs("real.default")
def real(site: Site, x: Pair):
    return x.real


@for_pairs("imag.default")
def imag(site: Site, x: Pair):
    return x.imag


@for_pairs("view_as_real.default", "view_as_real_copy.default")
def view_as_real(site: Site, x: Pair):
    return join(site.builder, x)


@for_pairs("view_as_complex.default", "view_as_complex_copy.default")
def view_as_complex(site: Site, x: Value):
    return split(site.builder, x)


@for_pairs("complex.default")
def complex_(site: Site, x: Value, y: Value):
    return Pair(site.operand(x, site.dtype), site.operand(y, site.dtype))


@for_pairs("conj.default", "_conj.default", "conj_physical.default", "_conj_physical.default")
def conj(site: Site, x: Pair):
    return Pair(x.real, site.builder.unary("neg", x.imag))


@for_pairs("resolve_conj.default", "resolve_neg.default", "conj_copy.default", "lift_fresh.default")
def same(site: Site, x: Pair):
    return x


@for_pairs("abs.default")
def magnitude(site: Site, x: Pair):
    return TABLE["aten.hypot.default"](site, x.real, x.imag)


@for_pairs("angle.default")
def angle(site: Site, x: Pair):
    return site.builder.binary("atan2", x.imag, x.real)
