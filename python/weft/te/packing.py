# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a panel is worth a copy with its rows next to each other.

A panel is read again for each tile of rows. Where it lies, its rows are a step of the tensor apart:
of a wide tensor each is in a page of its own, and steps of whole pages meet in few sets of a cache.
Constants in cycles, measured: docs/measurements/0072-te-edges-and-packing.md.
"""

from __future__ import annotations

_OF_A_COPY = 4  # load, store and the line that leaves L1, for each vector
_OF_A_PAGE = 7  # that the first level of the TLB does not hold
_OF_A_SET = 6  # more, for rows that meet in few sets
_PAGE = 4 << 10
_PAGES_AT_HAND = 64  # of the first level of the TLB


def packing_pays(row_tiles: int, registers: int, depth: int, row_step: int) -> bool:
    """row_tiles: that read the panel, each all its rows. registers: vectors in a row of it.
    depth: rows. row_step: bytes from one row to the next."""
    if depth * row_step <= _PAGES_AT_HAND * _PAGE:
        return False
    of_a_row = _OF_A_PAGE * min(1.0, row_step / _PAGE)
    if row_step % _PAGE == 0:
        of_a_row += _OF_A_SET
    return row_tiles * of_a_row > _OF_A_COPY * registers
