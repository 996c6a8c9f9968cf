# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sample's tensors laid out otherwise, with other sizes, and with special values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch

from opinfo import unspecified
from opinfo.calls import Call


def varied(
    op: str, call: Call, dtype: torch.dtype, choose: random.Random, share: float
) -> Iterator[Call]:
    """A random share of the call's variations. dtype: of the tensors that get special values;
    those of other types are indices and masks."""
    for name, vary in VARIATIONS.items():
        if choose.random() >= share or (op, name) in unspecified.VARIATIONS:
            continue
        if vary in _OF_VALUES:
            values = vary(dtype)
            seed = choose.randrange(1 << 30)
            generator = torch.Generator().manual_seed(seed)
            change = _with_values(values, dtype, generator) if values else None
        else:
            change = _of_tensors(vary)
        if change is None or not any(change(each) is not each for each in call.tensors):
            continue
        yield call.mapped(f"{call.label}, {name}", change)


def _of_tensors(vary: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], Any]:
    def change(leaf: Any) -> Any:
        is_strided = isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided
        return vary(leaf) if is_strided else leaf

    return change


# Of the same shapes and values.


def transposed(x: torch.Tensor) -> torch.Tensor:
    """Column-major."""
    return x.mT.contiguous().mT if x.dim() >= 2 else x


def expanded(x: torch.Tensor) -> torch.Tensor:
    """The first element of the first dim longer than one in the place of all of them."""
    for dim, size in enumerate(x.shape):
        if size > 1:
            return x.narrow(dim, 0, 1).expand(x.shape)
    return x


def stepped(x: torch.Tensor) -> torch.Tensor:
    """Every second element of rows that begin at an offset."""
    if x.dim() == 0 or x.numel() == 0:
        return x
    wide = torch.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), dtype=x.dtype)
    shown = wide[..., 1::2]
    shown.copy_(x)
    return shown


# Of other sizes.


def batch_of_one(x: torch.Tensor) -> torch.Tensor:
    return x.narrow(0, 0, 1).clone() if x.dim() and x.shape[0] > 1 else x


def empty_batch(x: torch.Tensor) -> torch.Tensor:
    return x.narrow(0, 0, 0).clone() if x.dim() and x.shape[0] else x


# Of other values.


def nans(dtype: torch.dtype) -> list[Any]:
    return [float("nan")] if dtype.is_floating_point else []


def infinities(dtype: torch.dtype) -> list[Any]:
    return [float("inf"), float("-inf")] if dtype.is_floating_point else []


def zeros(dtype: torch.dtype) -> list[Any]:
    return [-0.0, 0.0] if dtype.is_floating_point else [0]


def denormals(dtype: torch.dtype) -> list[Any]:
    if not dtype.is_floating_point:
        return []
    least = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    return [least, -least, 3 * least, torch.finfo(dtype).smallest_normal / 2]


def extremes(dtype: torch.dtype) -> list[Any]:
    if dtype == torch.bool:
        return [True, False]
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return [info.min, info.max]


def _with_values(
    values: list[Any], dtype: torch.dtype, generator: torch.Generator
) -> Callable[[Any], Any]:
    """A third of the elements, and the first one, become one of these."""

    def change(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.dtype != dtype or not leaf.numel():
            return leaf
        if leaf.layout != torch.strided:
            return leaf
        chosen = torch.rand(leaf.shape, generator=generator) < 1 / 3
        chosen.view(-1)[0] = True
        which = torch.randint(0, len(values), leaf.shape, generator=generator)
        return torch.where(chosen, torch.tensor(values, dtype=dtype)[which], leaf)

    return change


_OF_VALUES = (nans, infinities, zeros, denormals, extremes)
VARIATIONS: dict[str, Callable[..., Any]] = {
    "transposed": transposed,
    "expanded": expanded,
    "with a step": stepped,
    "batch of one": batch_of_one,
    "size 0": empty_batch,
    "nan": nans,
    "infinities": infinities,
    "zeros": zeros,
    "denormals": denormals,
    "extremes": extremes,
}
