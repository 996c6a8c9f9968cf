# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for packed sequences whose lengths only a run knows: rows of a padded batch, step by step,
chosen by whether a sequence has the step.

A recurrent net computes all rows of the padded batch. Where a sequence has ended, or has not begun
as time runs backwards, it keeps its state.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.masked import Masked, masked, same_value
from weft.frontend.ops.dropout import rows_dropped_out
from weft.frontend.ops.recurrent import CELLS, Direction, layers_of
from weft.frontend.table import Site


def _counting(site: Site, lengths: Value, steps: int) -> Value:
    """Whether a sequence has a step, bool (steps, batch)."""
    b, shape = site.builder, (steps, lengths.size)
    return b.compare("lt", b.iota(torch.int64, shape, 0), b.along(lengths, 1, shape))


def _dense(site: Site, rows: Masked, counting: Value, value: float) -> Value:
    """(steps, batch, ...), with `value` where a sequence has no step."""
    b = site.builder
    if not isinstance(rows, Masked) or rows.dim or not same_value(b.graph, counting, rows.place):
        raise Decline("packed sequences with rows of others")
    x = b.reshape(rows.value, (*counting.shape, *rows.value.shape[1:]))
    return b.select(
        b.broadcast_in_dim(counting, [0, 1], x.shape), x, b.constant(value, x.dtype, x.shape)
    )


@masked("weft_packed.rows.default")
def rows(site: Site, x: Value, lengths: Value):
    if not isinstance(x, Value) or not isinstance(lengths, Value):
        raise Decline("packed sequences of what are no plain tensors")
    b, counting = site.builder, _counting(site, lengths, x.shape[0])
    value = b.reshape(x, (counting.size, *x.shape[2:]))
    return Masked(value, b.reshape(counting, (counting.size,)), counting)


@masked("weft_packed.sizes.default")
def sizes(site: Site, lengths: Value, steps: int):
    b, counting = site.builder, _counting(site, lengths, steps)
    counts = b.reduce("sum", b.convert(counting, torch.int64), [1])
    has_any = b.compare("gt", counts, 0)
    return Masked(counts, has_any, has_any)


@masked("weft_packed.recurrent_rows.default")
def recurrent(site: Site, kind: str, x: Masked, lengths: Value, steps: int, *settings):
    b, counting = site.builder, _counting(site, lengths, steps)
    # What stands where a sequence has no step may be no number, and goes into products.
    dense = _dense(site, x, counting, 0)

    def run(one: Direction, x: Value, state: Sequence[Value], reverse: bool):
        return one.run(x, state, reverse, counting)

    def drop(x: Value, p: float) -> Value:
        return rows_dropped_out(site, x, p, lengths)

    output, *states = layers_of(site, CELLS[kind], run, dense, *settings, drop=drop)
    return [x.holding(b.reshape(output, (counting.size, output.shape[2]))), *states]


@masked("weft_packed.padded.default")
def padded(site: Site, rows: Masked, lengths: Value, steps: int, value: float):
    return _dense(site, rows, _counting(site, lengths, steps), value)
