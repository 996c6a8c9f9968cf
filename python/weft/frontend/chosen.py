# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chosen elements as results: those that a mask chooses moved to the front, and their number.

The program returns all rows, the chosen ones first in their order, and how many these are; the
caller gets a tensor of as many rows, as eager execution gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.masked import Masked


@dataclass
class Packer:
    """Packs each selection once, however many results show it."""

    builder: Builder
    _orders: dict[int, tuple[Value, Value]] = field(default_factory=dict)
    _packed: dict[tuple[int, int, int], Value] = field(default_factory=dict)

    def pack(self, masked: Masked) -> tuple[Value, Value]:
        """The value, or the table of which it is a column, with the chosen rows ahead of the
        others, each in their order; and their number, int64 (). Rows are those of dim
        `masked.dim`."""
        value = masked.value if masked.table is None else masked.table
        dim = masked.dim
        places, count = self._order(masked.mask)
        selection = id(value), id(masked.mask), dim
        if selection not in self._packed:
            b = self.builder
            packed = b.constant(0, value.dtype, value.shape)
            if value.size:
                dims = [dim, *(d for d in range(value.rank) if d != dim)]
                packed = b.scatter(packed, b.transpose(value, dims), [places], [dim])
            self._packed[selection] = packed
        return self._packed[selection], count

    def _order(self, mask: Value) -> tuple[Value, Value]:
        """The place of each row, and the number of the chosen ones."""
        if id(mask) not in self._orders:
            self._orders[id(mask)] = self._places(mask)
        return self._orders[id(mask)]

    def _places(self, mask: Value) -> tuple[Value, Value]:
        b, rows = self.builder, mask.size
        if not rows:
            return b.constant(0, torch.int64, [0]), b.constant(0, torch.int64)
        seen = b.cumulative("sum", b.convert(mask, torch.int64), 0)
        count = b.slice(seen, 0, rows - 1, rows)
        others = b.binary("sub", b.iota(torch.int64, [rows], 0), seen)
        behind = b.binary("add", b.broadcast(count, [rows]), others)
        places = b.select(mask, b.scalar("sub", seen, 1), behind)
        places.bounds = (0, rows - 1)
        return places, b.reshape(count, [])
