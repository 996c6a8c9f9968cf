# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values better than an op's own: in float64 for float32 and bfloat16, by numpy's long double or
mpmath for float64, where there is a function for the op."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

from opinfo.calls import Call, Ran, copies, run
from opinfo.longdouble import exact_of
from opinfo.samples import ops

_SMALLER = (torch.float32, torch.bfloat16, torch.float16)
# Ops whose values depend on the element type itself: float64 is no better than eager.
_OF_THE_TYPE = frozenset(("nextafter", "nan_to_num", "frexp"))
# Ops that compute integers in float32, whatever the default type is.
_INTEGERS_IN_FLOAT32 = frozenset(("masked.std", "masked.var"))


def reference_of(op: str, call: Call, eager: Ran) -> list[torch.Tensor | None]:
    """In float64, for each of eager's leaves; None where there is no better value."""
    leaves = eager.leaves
    none: list[torch.Tensor | None] = [None] * len(leaves)
    kinds = {real(x).dtype for x in leaves if isinstance(x, torch.Tensor)}
    if op in _OF_THE_TYPE:
        return none
    if torch.float64 in kinds:
        return [exact_of(op, call), *none[1:]]
    double = call.mapped(call.label, _all_in_double if op in _INTEGERS_IN_FLOAT32 else _in_double)
    with _floats_of_integers_in_double():
        found = run(double.on, copies(double.tensors))
    if found.error is not None or len(found.leaves) != len(leaves):
        return none  # the op has no float64 kernel
    return [real(x).double() if x.layout == torch.strided else None for x in found.leaves]


@contextlib.contextmanager
def _floats_of_integers_in_double() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def real(x: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs."""
    return torch.view_as_real(x.detach().resolve_conj()) if x.is_complex() else x


def _in_double(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.double() if leaf.dtype in _SMALLER else leaf
    return torch.float64 if leaf in _SMALLER else leaf


def _all_in_double(leaf: Any) -> Any:
    numbers = isinstance(leaf, torch.Tensor) and leaf.dtype != torch.bool
    return leaf.double() if numbers else _in_double(leaf)


def is_pointwise(op: str) -> bool:
    """Whether each element of the result comes from one of each argument."""
    return op in _pointwise()


@lru_cache
def _pointwise() -> frozenset[str]:
    kinds = (UnaryUfuncInfo, BinaryUfuncInfo)
    return frozenset(name for name, op in ops().items() if isinstance(op, kinds))
