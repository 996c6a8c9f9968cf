# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether PyTorch's kernels refuse a call, found by asking them.

Fake tensors take types that no kernel has, scalars that no element can hold and dims that are not
there. So the call is made on tensors of ones and zeros; where they would be large, on small ones
of the same types and ranks, with sizes cut down. What depends on values is not found here.

Kernels believe a lot about sizes: those of different tensors are cut down only where they fit each
other still, and ops that are not public, so that others check their arguments, are not asked then.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

# A call on more elements than this is made with its sizes cut down, to one cap after another, until
# the small call is a valid one.
_MOST_ELEMENTS = 2**14
_CAPS = (3, 8, 16)
# Elements of floats and of integers: zeros are indices of whatever is there, and ones divide. Some
# kernels refuse values; what is refused with all of these is refused for its types or sizes.
_FILLS = ((1, 0), (1, 1), (0, 0))
_IS_INTEGER = re.compile(r"\b(Sym)?[iI]nt\b")
_OTHER_TYPES: tuple[Callable[[torch.dtype], torch.dtype], ...] = (
    lambda dtype: torch.float64 if dtype.is_floating_point else torch.int64,
    lambda dtype: torch.float64,
)


@dataclass(frozen=True)
class _Like:
    """A tensor argument."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class _Integer:
    """An argument that is an integer by the schema: a size, a dim, a count. Scalars are none."""

    value: int


class _NotAsked(Exception):
    """The arguments are nothing that a small call could have."""


def refusal(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any], results: Sequence[Any]
) -> str | None:
    """PyTorch's own words where its kernels refuse the call, None where they take it.
    Ops that are not PyTorch's own are not asked, nor views, which have no kernels.

    args, kwargs: as on the nodes of an exported graph, with fake tensors for the nodes. results:
    the call's, flattened; they tell how large it is.
    """
    if op.namespace != "aten" or _is_view(op):
        return None
    try:
        leaves, spec = pytree.tree_flatten(_described(op, args, kwargs))
    except _NotAsked:
        return None
    tensors = [leaf for leaf in leaves if isinstance(leaf, _Like)]
    made = (result for result in results if isinstance(result, torch.Tensor))
    total = sum(tensor.size for tensor in tensors) + sum(math.prod(r.shape) for r in made)
    if op._schema.name.startswith("aten::_") and (len(tensors) != 1 or total > _MOST_ELEMENTS):
        return None
    if total <= _MOST_ELEMENTS:
        return _asked(op, tuple(leaves), spec)
    return _asked_small(op, leaves, spec) if _fit(tensors) else None


def _asked_small(op: torch._ops.OpOverload, leaves: list[Any], spec: pytree.TreeSpec) -> str | None:
    for cap in _CAPS:
        small = tuple(_cut(leaf, cap) for leaf in leaves)
        if sum(leaf.size for leaf in small if isinstance(leaf, _Like)) > _MOST_ELEMENTS:
            return None
        why = _asked(op, small, spec)
        if why is None:
            return None
        others = (tuple(_retyped(leaf, kind) for leaf in small) for kind in _OTHER_TYPES)
        if any(_asked(op, other, spec) is None for other in others):
            return why  # it is the types that are refused, not the small sizes
    return None


def _fit(tensors: list[_Like]) -> bool:
    """Whether sizes that are cut down fit each other still. Of no tensors, scalars may say how
    large the result is."""
    try:
        torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except RuntimeError:
        return False
    return bool(tensors)


def _is_view(op: torch._ops.OpOverload) -> bool:
    return any(
        result.alias_info and not result.alias_info.is_write for result in op._schema.returns
    )


def _described(op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    positional = [_describe(a, given) for a, given in zip(op._schema.arguments, args)]
    by_name = {argument.name: argument for argument in op._schema.arguments}
    return positional, {name: _describe(by_name[name], given) for name, given in kwargs.items()}


def _describe(argument: torch._C.Argument, given: Any) -> Any:
    is_integer = _IS_INTEGER.search(str(argument.real_type)) is not None

    def leaf(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
                raise _NotAsked
            return _Like(value.dtype, tuple(map(_known, value.shape)))
        if isinstance(value, torch.device) and value.type != "cpu":
            raise _NotAsked
        if isinstance(value, int) and not isinstance(value, bool) and is_integer:
            return _Integer(value)
        return _known(value)

    return pytree.tree_map(leaf, given)


def _known(value: Any) -> Any:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise _NotAsked
    return value


def _cut(leaf: Any, cap: int) -> Any:
    if isinstance(leaf, _Like):
        return replace(leaf, shape=tuple(min(size, cap) for size in leaf.shape))
    if isinstance(leaf, _Integer):
        return _Integer(min(leaf.value, cap))
    return leaf


def _retyped(leaf: Any, kind: Callable[[torch.dtype], torch.dtype]) -> Any:
    return replace(leaf, dtype=kind(leaf.dtype)) if isinstance(leaf, _Like) else leaf


def _asked(op: torch._ops.OpOverload, leaves: tuple, spec: pytree.TreeSpec) -> str | None:
    """Why PyTorch refuses the call, whatever the values."""
    return _asked_once(op, leaves, tuple(map(type, leaves)), spec)  # 1, 1.0 and True are equal


@functools.lru_cache(maxsize=4096)
def _asked_once(
    op: torch._ops.OpOverload, leaves: tuple, types: tuple[type, ...], spec: pytree.TreeSpec
) -> str | None:
    why = None
    for fills in _FILLS:
        args, kwargs = pytree.tree_unflatten([_real(leaf, fills) for leaf in leaves], spec)
        try:
            with _unnoticed():
                op(*args, **kwargs)
        except torch.linalg.LinAlgError:
            return None  # always about values
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        else:
            return None
    return why


def _real(leaf: Any, fills: tuple[int, int]) -> Any:
    if isinstance(leaf, _Integer):
        return leaf.value
    if not isinstance(leaf, _Like):
        return leaf
    number = fills[0] if leaf.dtype.is_floating_point or leaf.dtype.is_complex else fills[1]
    return torch.full(leaf.shape, number, dtype=leaf.dtype, device="cpu")


@contextlib.contextmanager
def _unnoticed() -> Iterator[None]:
    with torch.no_grad(), torch.autocast("cpu", enabled=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
