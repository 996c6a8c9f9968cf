# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state that a program depends on at one moment, as state.py finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_ as _is
from typing import Any

import torch

from weft._core import ObjectGuards
from weft.capture.free_numbers import Place
from weft.capture.name_bindings import Bindings
from weft.frontend.numbers import Owner


@dataclass
class Snapshot:
    """reason: why PyTorch has to run calls in this state, or None. tensors: of the modules, in the
    order in which the key counts them. gradients: parameters that may come to require them.
    generators: of random numbers, whose state is no part of it. reached: every object that was
    looked into or compared, by address; it keeps them alive. hooked: forwards have hooks. free,
    numbers: see FreeNumbers."""

    key: tuple = ()
    hooked: bool = False
    tensors: list[torch.Tensor] = field(default_factory=list)
    guards: ObjectGuards = field(default_factory=ObjectGuards)
    reason: str | None = None
    gradients: list[torch.Tensor] = field(default_factory=list)
    bindings: Bindings = field(default_factory=Bindings)
    generators: list[Any] = field(default_factory=list)
    reached: dict[int, Any] = field(default_factory=dict)
    free: list[Place] = field(default_factory=list)
    numbers: dict[Place, tuple[Owner, Any]] = field(default_factory=dict)

    def same_as(self, other: Snapshot) -> bool:
        """Whether nothing has happened between the two, tensors' values apart."""
        return self.key == other.key and self.has_tensors(other.tensors)

    def has_tensors(self, tensors: list[torch.Tensor]) -> bool:
        return len(self.tensors) == len(tensors) and all(map(_is, self.tensors, tensors))
