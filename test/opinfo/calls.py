# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One call of an op: a function of tensors, everything else about it fixed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree

# op_db's own: it seeds ops that draw random numbers by `wrapper_set_seed`.
_SEED_OF_RUNS = 42


@dataclass
class Call:
    """`function(*args, **kwargs)`. label: names it in records, the same in every process."""

    label: str
    function: Callable[..., Any]
    args: tuple
    kwargs: dict[str, Any]

    def __post_init__(self) -> None:
        leaves, self._spec = pytree.tree_flatten((self.args, self.kwargs))
        self._leaves: list[Any] = leaves
        self._places: dict[int, list[int]] = {}
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                self._places.setdefault(id(leaf), []).append(place)

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Those among the arguments; one that stands twice is listed once."""
        return [self._leaves[places[0]] for places in self._places.values()]

    def on(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The result of the call with other tensors in the places of its own."""
        leaves = list(self._leaves)
        for places, tensor in zip(self._places.values(), tensors, strict=True):
            for place in places:
                leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self.function(*args, **kwargs)

    def mapped(self, label: str, change: Callable[[Any], Any]) -> Call:
        """The call with every leaf of its arguments changed; equal tensors stay one."""
        changed: dict[int, Any] = {}
        for leaf in self._leaves:
            if id(leaf) not in changed:
                changed[id(leaf)] = change(leaf)
        leaves = [changed[id(leaf)] for leaf in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return Call(label, self.function, args, kwargs)


@dataclass
class Ran:
    """A call that has been made: its tensors, as they are now, and the value or the error."""

    tensors: list[torch.Tensor]
    value: Any = None
    error: BaseException | None = None

    @property
    def leaves(self) -> list[Any]:
        """Those of the value, then the tensors."""
        return [*pytree.tree_leaves(self.value), *self.tensors]


def run(function: Callable[[list[torch.Tensor]], Any], tensors: list[torch.Tensor]) -> Ran:
    """Random numbers are the same ones in every run."""
    seed_all(_SEED_OF_RUNS)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Ran(tensors, function(tensors))
        except Exception as error:
            return Ran(tensors, error=error)


def seed_all(seed: int) -> None:
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors that lie in memory as these do, and share memory where these do."""
    storages: dict[int, torch.UntypedStorage] = {}
    made = []
    for tensor in tensors:
        if tensor.layout != torch.strided or tensor.is_meta:
            made.append(tensor.clone())
            continue
        storage = tensor.untyped_storage()
        if storage._cdata not in storages:
            storages[storage._cdata] = storage.clone()
        copy = torch.empty(0, dtype=tensor.dtype)
        made.append(
            copy.set_(
                storages[storage._cdata], tensor.storage_offset(), tensor.size(), tensor.stride()
            )
        )
    return made


def text_of(value: Any) -> str:
    """An argument in one short line: `f32[2, 3](3, 1)` of tensors, strides where not contiguous."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        if value.layout != torch.strided:
            return f"{value.layout}"
        lying = "" if value.is_contiguous() else f"{tuple(value.stride())}"
        return f"{name}{list(value.shape)}{lying}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return repr(value)


def text_of_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    named = [f"{name}={text_of(value)}" for name, value in kwargs.items()]
    return ", ".join([*map(text_of, args), *named])[:400]
