# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which programs a callable drops once it has the most that it may have, and whether a new one is
worth that. Programs that are dropped stay in the cache on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.compiled.requests import Environment

# The number of programs that replace others, after which it is checked whether that has paid off.
_PERIOD = 32
# Compiling has not paid off if such programs have answered fewer calls than this on average. It is
# the least number that distinguishes reuse from a size that grows by one at each call, not a
# break-even point.
_WORTHWHILE = 4
_MOST_PATIENCE = 256


class Admission:
    """Decides whether a new size gets a program. While sizes recur, each new one gets a program, in
    place of the one that was called longest ago. While they do not, as for a sequence that grows at
    each call, compiling would never end; then one in 4, 16, 64, 256 calls without a program gets
    one."""

    def __init__(self) -> None:
        self._patience = 1
        self._asked = 0
        self._admitted = 0
        self._hits = 0

    def admits(self, hits: int) -> bool:
        """Whether the call gets a program. hits: the calls that the callable's programs have
        answered so far."""
        self._asked += 1
        if self._asked < self._patience:
            return False
        self._asked = 0
        self._admitted += 1
        if self._admitted == _PERIOD:
            paid = hits - self._hits >= _WORTHWHILE * _PERIOD
            self._patience = 1 if paid else min(4 * self._patience, _MOST_PATIENCE)
            self._admitted, self._hits = 0, hits
        return True


def evict(environments: list[Environment]) -> None:
    """Drops the least recently used program."""
    environment, oldest = min(
        ((each, made) for each in environments for made in each.specializations),
        key=lambda pair: (pair[1].checking, pair[1].core.last_use),
    )
    programs = environment.specializations
    programs[:] = [each for each in programs if each is not oldest]
    environment.core.remove(oldest.core)
