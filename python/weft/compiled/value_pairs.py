# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors at the same places of two values, which differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from weft.capture.signature import PLAIN


class Differs(Exception):
    """Eager execution did something that the program did not do."""


def pairs_of(eager: Any, own: Any, name: str) -> Iterator[tuple[torch.Tensor, torch.Tensor, str]]:
    """The tensors of two values at the same places.

    Raises: Differs, if anything but tensors differs.
    """
    if eager is own and not isinstance(eager, torch.Tensor):
        return
    if type(eager) is not type(own):
        raise Differs(f"{name} is a {type(own).__qualname__}, not a {type(eager).__qualname__}")
    if isinstance(eager, torch.Tensor):
        if (eager.dtype, eager.shape) != (own.dtype, own.shape):
            raise Differs(f"{name} is {own.dtype}{list(own.shape)}, not {eager.dtype}"
                           f"{list(eager.shape)}")  # fmt: skip
        yield eager, own, name
    elif isinstance(eager, (tuple, list)):
        if len(eager) != len(own):
            raise Differs(f"{name} has {len(own)} entries, not {len(eager)}")
        for number, (x, y) in enumerate(zip(eager, own)):
            yield from pairs_of(x, y, f"{name}[{number}]")
        yield from _attributes(eager, own, name)
    elif isinstance(eager, dict):
        if list(eager) != list(own):
            raise Differs(f"{name} has other keys")
        for key in eager:
            yield from pairs_of(eager[key], own[key], f"{name}[{key!r}]")
        yield from _attributes(eager, own, name)
    elif isinstance(eager, float):
        if eager.hex() != own.hex():
            raise Differs(f"{name} is {own}, not {eager}")
    elif isinstance(eager, PLAIN) or not hasattr(eager, "__dict__"):
        if eager != own:
            raise Differs(f"{name} is {own!r}, not {eager!r}")
    else:
        yield from _attributes(eager, own, name)


def _attributes(eager: Any, own: Any, name: str) -> Iterator:
    if hasattr(eager, "__dict__"):
        yield from pairs_of(vars(eager), vars(own), name)
