# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides whether it is worth copying a panel so that its rows are adjacent.

A panel is read again for each tile of rows. In the original tensor its rows are the tensor's stride
apart: in a wide tensor each row is in a page of its own, and strides of whole pages map to few sets
of a cache. Constants are measured, in cycles: docs/measurements/0072-te-edges-and-packing.md.
"""

from __future__ import annotations

_OF_A_COPY = 4  # for each vector: a load, a store, and the cache line that is evicted from L1
_OF_A_PAGE = 7  # for a page that the first-level TLB does not hold
_OF_A_SET = 6  # in addition, for rows that map to few sets of the cache
_PAGE = 4 << 10
_PAGES_AT_HAND = 64  # pages that the first-level TLB holds


def packing_pays(row_tiles: int, registers: int, depth: int, row_step: int) -> bool:
    """Whether packing a panel saves time. row_tiles: the number of tiles that read the panel.
    registers: vectors in a row of the panel. depth: the number of its rows. row_step: bytes from
    one row to the next."""
    if depth * row_step <= _PAGES_AT_HAND * _PAGE:
        return False
    of_a_row = _OF_A_PAGE * min(1.0, row_step / _PAGE)
    if row_step % _PAGE == 0:
        of_a_row += _OF_A_SET
    return row_tiles * of_a_row > _OF_A_COPY * registers
