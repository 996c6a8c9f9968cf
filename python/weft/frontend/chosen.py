# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chosen elements as results: those that a mask chooses moved to the front, and their number.

The program returns all rows, the chosen ones first in their order, and how many these are; the
caller gets a tensor of as many rows, as eager execution gives.
"""

from __future__ import annotations

import math
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
        order, count = self._order(masked.mask)
        selection = id(value), id(masked.mask), masked.dim
        if selection not in self._packed:
            if masked.indexed is None:
                packed = self._rows(value, order, masked.dim)
            else:
                packed = self._places(order, masked.indexed)
            self._packed[selection] = packed
        return self._packed[selection], count

    def _order(self, mask: Value) -> tuple[Value, Value]:
        """The numbers of the rows, int64 (n), the chosen ones first; and how many these are."""
        if id(mask) not in self._orders:
            b = self.builder
            count = b.reduce("sum", b.convert(mask, torch.int64), [0])
            self._orders[id(mask)] = b.sort(mask, 0, True, mask.size)[1], count
        return self._orders[id(mask)]

    def _rows(self, value: Value, order: Value, dim: int) -> Value:
        b = self.builder
        if not value.size:
            return value
        first = [dim, *(d for d in range(value.rank) if d != dim)]
        return b.transpose(b.gather(value, [order], [dim]), sorted(first, key=first.__getitem__))

    def _places(self, order: Value, shape: tuple[int, ...]) -> Value:
        """The table (n, rank) of the places of elements, int64, by their numbers: these are narrow
        where they can be, as 64-bit integers are divided one by one."""
        b, rows = self.builder, order.size
        if rows <= torch.iinfo(torch.int32).max:
            order = b.convert(order, torch.int32)
        dims = b.iota(order.dtype, [len(shape), rows], 0)
        columns: list[Value] = []
        outer: Value | None = None
        for dim, size in enumerate(shape):
            inner = math.prod(shape[dim + 1 :])
            place = whole = b.scalar("div", order, inner) if inner > 1 else order
            if outer is not None:
                place = b.binary("sub", whole, b.scalar("mul", outer, size))
            outer = whole
            columns.append(b.broadcast(b.reshape(place, [1, rows]), dims.shape))
        # Column by column, as the user's tensor lies in memory; a concatenation would be taken
        # apart element by element.
        table = columns[0]
        for dim, column in enumerate(columns[1:], 1):
            table = b.select(b.compare("eq", dims, dim), column, table)
        return b.transpose(b.convert(table, torch.int64), [1, 0])
