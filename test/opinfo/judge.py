# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program made of a call against what PyTorch made of it: structure, types, strides and who
shares whose memory; values by `accuracy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from opinfo.accuracy import Accuracy
from opinfo.calls import Call, Ran, text_of
from opinfo.unspecified import STRIDES


class Wrong(Exception):
    """What differs."""


def compare(op: str, call: Call, eager: Ran, own: Ran, unspecified: bool) -> None:
    """unspecified: whether the values are what lies in memory that nobody has written.

    Raises: Wrong.
    """
    leaves, structure = pytree.tree_flatten(eager.value)
    found, found_structure = pytree.tree_flatten(own.value)
    if structure != found_structure:
        raise Wrong(f"structure {found_structure} instead of {structure}")
    for number, (want, got) in enumerate(zip(leaves, found, strict=True)):
        _compare_kinds(f"result {number}", want, got, op not in STRIDES)
    _compare_memory(eager.tensors, leaves, own.tensors, found)
    if unspecified:
        return
    names = [f"result {number}" for number in range(len(leaves))]
    names += [f"argument {number}" for number in range(len(own.tensors))]
    wants, gots = [*leaves, *eager.tensors], [*found, *own.tensors]
    accuracy = Accuracy(op, call, eager)
    for number, (name, want, got) in enumerate(zip(names, wants, gots, strict=True)):
        if isinstance(want, torch.Tensor) and (what := accuracy.difference(number, want, got)):
            raise Wrong(f"{name}: {what}")


def _compare_kinds(name: str, want: Any, got: Any, strides: bool) -> None:
    if not isinstance(want, torch.Tensor):
        same = want == got or (want != want and got != got)
        if type(want) is not type(got) or not same:
            raise Wrong(f"{name} is {got!r} instead of {want!r}")
        return
    if not isinstance(got, torch.Tensor):
        raise Wrong(f"{name} is {got!r} instead of a tensor")
    if (want.dtype, want.shape) != (got.dtype, got.shape):
        raise Wrong(f"{name} is {text_of(got)} instead of {text_of(want)}")
    if strides and _telling(want) != _telling(got):
        raise Wrong(f"{name} has strides {got.stride()} instead of {want.stride()}")


def _telling(tensor: torch.Tensor) -> list[int]:
    """The strides that tell elements apart. The others are those of the first call, which PyTorch
    runs, in every program that Weft publishes; here there is none."""
    if tensor.numel() == 0:
        return []
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size > 1]


def _compare_memory(
    wanted_inputs: Sequence[torch.Tensor], wanted: Sequence[Any], inputs: Sequence[torch.Tensor],
    found: Sequence[Any],
) -> None:  # fmt: skip
    """Results lie in the same arguments' memory, at the same places, and share it alike."""
    places = _places(wanted_inputs, wanted), _places(inputs, found)
    for number, (want, got) in enumerate(zip(*places)):
        if want != got:
            raise Wrong(f"result {number} lies in {got} instead of {want}")


def _places(inputs: Sequence[torch.Tensor], results: Sequence[Any]) -> list[Any]:
    storages: dict[int, str] = {}
    for number, tensor in enumerate(inputs):
        storages.setdefault(tensor.untyped_storage()._cdata, f"argument {number}")
    places: list[Any] = []
    for number, result in enumerate(results):
        if not isinstance(result, torch.Tensor) or result.numel() == 0:
            places.append(None)
            continue
        same = next((f"argument {i} itself" for i, x in enumerate(inputs) if x is result), None)
        name = storages.setdefault(result.untyped_storage()._cdata, f"result {number}")
        in_argument = name.startswith("argument")
        places.append(same or (name, result.storage_offset() if in_argument else None))
    return places
