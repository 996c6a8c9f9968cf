# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For which sizes a program for ranges stands: relations that the traced code has asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Protocol

import torch

from weft.frontend.sizes.extents import Domain, Samples
from weft.frontend.sizes.padding import NotForRange


class SizeGuard(Protocol):
    """For which sizes, of those in the ranges of the symbols, a program stands."""

    @property
    def is_in_ranges(self) -> bool: ...

    def holds(self, sizes: Sequence[int]) -> bool: ...


class Guard:
    """What holds for the sizes of all calls of a program, in Python, of n[0], n[1] and so on."""

    def __init__(self, text: str, symbols: set[int]) -> None:
        self.text = text
        self.symbols = symbols
        names = {"math": math, "torch": torch, "OpaqueUnaryFn_log": math.log}
        self._check = eval(f"lambda n: bool({text})", names)

    def __reduce__(self) -> tuple:
        return Guard, (self.text, self.symbols)

    def holds(self, sizes: Sequence[int]) -> bool:
        return self._check(sizes)

    @property
    def is_in_ranges(self) -> bool:
        """Whether the ranges of the symbols say the same."""
        return len(self.symbols) < 2


class SizesAmong:
    """Guards that the size of a symbol is one of those that its guards leave."""

    is_in_ranges = False

    def __init__(self, symbol: int, domain: Domain) -> None:
        self._symbol, self._domain = symbol, frozenset(domain)

    def holds(self, sizes: Sequence[int]) -> bool:
        return sizes[self._symbol] in self._domain


def within_guards(
    domains: Sequence[Domain], hints: Sequence[int], guards: Sequence[SizeGuard], samples: Samples
) -> Samples:
    """The samples, but where a guard does not hold with other sizes beside those that the sample
    varies, or those of the call that was traced, `hints`. The first sample is of the largest sizes,
    and each symbol differs from these alone in one, as functions of the symbols need.

    Raises: NotForRange, if the guards leave no such samples.
    """

    def holds(sizes: Sequence[int]) -> bool:
        return all(guard.holds(sizes) for guard in guards)

    found = []
    for sample in samples:
        choices = [(n, hint, domain[0]) for n, hint, domain in zip(sample, hints, domains)]
        kept = [n != first for n, first in zip(sample, samples[0])]
        own = [(n,) if is_kept else each for n, is_kept, each in zip(sample, kept, choices)]
        found.append(next(filter(holds, itertools.product(*own)), tuple(hints)))
    alone = {
        next(j for j, is_own in enumerate(changed) if is_own)
        for changed in ([n != high for n, high in zip(each, samples[0])] for each in found)
        if sum(changed) == 1
    }
    varied = {j for j, domain in enumerate(domains) if len(domain) > 1}
    if found[0] != samples[0] or alone != varied:
        raise NotForRange("relations between sizes leave too few of them")
    return [*dict.fromkeys(found)]
