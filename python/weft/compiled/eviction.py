# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which programs a callable lets go of once it has as many as it may, and whether another one is
worth that. What is let go of stays in the cache on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.compiled.requests import Environment

# Programs that took the place of others, after which it is seen whether that has paid.
_PERIOD = 32
# Calls answered for each such program, less than which have not paid for its compilation. The
# least that tells reuse from a size that grows by one at each call, not a break-even point.
_WORTHWHILE = 4
_MOST_PATIENCE = 256


class Admission:
    """While sizes come back, each new one gets a program, in the place of the one whose last call
    is longest ago. While they do not, as with a sequence that grows at each call, compiling would
    go on for ever: then one call in 4, 16, 64, 256 that no program stands for gets one."""

    def __init__(self) -> None:
        self._patience = 1
        self._asked = 0
        self._admitted = 0
        self._hits = 0

    def admits(self, hits: int) -> bool:
        """hits: calls that the callable's programs have answered so far."""
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
    """Lets go of the least recently used program."""
    environment, oldest = min(
        ((each, made) for each in environments for made in each.specializations),
        key=lambda pair: (pair[1].checking, pair[1].core.last_use),
    )
    programs = environment.specializations
    programs[:] = [each for each in programs if each is not oldest]
    environment.core.remove(oldest.core)
