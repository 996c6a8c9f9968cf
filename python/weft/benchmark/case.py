# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured: a program with the arguments of one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn


@dataclass(frozen=True)
class Case:
    """module: in evaluation mode. args, kwargs: of a call. program: what the module was
    exported as, where that is what the user has."""

    title: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    program: torch.export.ExportedProgram | None = None


class Subject(Protocol):
    """Makes the same case in every process that measures it. Pickled on the way there."""

    name: str

    def load(self) -> Case: ...

    def system(self, name: str) -> Callable[[Case, int], Any]:
        """What makes a `Prepared` of a case for a number of threads. Raises: KeyError."""
