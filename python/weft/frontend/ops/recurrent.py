# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent nets, unrolled: a cell for each step, layer and direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.frontend.builder import Builder
from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.contract import linear
from weft.frontend.ops.shape import select
from weft.frontend.table import Site, lowers

_MAX_CELLS = 512  # each costs 3 to 5 ms of compilation

# From what the input and the hidden state give to the gates, (batch, gates * width) each, and
# the state of the step before, (batch, width) each, to that of this one; hidden state first.
Cell = Callable[[Builder, Value, Value, Sequence[Value]], tuple[Value, ...]]


def _lstm_cell(b: Builder, given: Value, recalled: Value, state: Sequence[Value]):
    enter, keep, new, leave = _parts(b, b.binary("add", given, recalled), 4)
    kept = b.binary("mul", b.unary("sigmoid", keep), state[1])
    entered = b.binary("mul", b.unary("sigmoid", enter), b.unary("tanh", new))
    cell = b.binary("add", kept, entered)
    return b.binary("mul", b.unary("sigmoid", leave), b.unary("tanh", cell)), cell


def _gru_cell(b: Builder, given: Value, recalled: Value, state: Sequence[Value]):
    (reset, update, new), recalled = _parts(b, given, 3), _parts(b, recalled, 3)
    reset = b.unary("sigmoid", b.binary("add", reset, recalled[0]))
    update = b.unary("sigmoid", b.binary("add", update, recalled[1]))
    new = b.unary("tanh", b.binary("add", new, b.binary("mul", reset, recalled[2])))
    return (b.binary("add", b.binary("mul", b.binary("sub", state[0], new), update), new),)


def _tanh_cell(b: Builder, given: Value, recalled: Value, _: Sequence[Value]):
    return (b.unary("tanh", b.binary("add", given, recalled)),)


def _relu_cell(b: Builder, given: Value, recalled: Value, _: Sequence[Value]):
    return (b.scalar("max", b.binary("add", given, recalled), 0),)


def _parts(b: Builder, gates: Value, count: int) -> list[Value]:
    width = gates.shape[1] // count
    return [b.slice(gates, 1, i * width, (i + 1) * width) for i in range(count)]


@dataclass(frozen=True)
class _Direction:
    """One direction of one layer. time: the dim of steps. params: of the input, of the hidden
    state, their biases if there are any, and the projection of the hidden state, if there is one.
    """

    site: Site
    cell: Cell
    time: int
    params: Sequence[Value]
    has_biases: bool

    def run(self, x: Value, state: Sequence[Value], steps: Sequence[int]):
        """x: (steps, batch, in), or (batch, steps, in). To what the steps give, in their own
        order, and the last state."""
        b = self.site.builder
        biases = self.params[2:4] if self.has_biases else (None, None)
        projection = self.params[4 if self.has_biases else 2 :]
        given = linear(self.site, x, self.params[0], biases[0])
        hidden = {}
        for step in steps:
            seen = select(self.site, given, self.time, step)
            recalled = linear(self.site, state[0], self.params[1], biases[1])
            wide = [b.convert(value, opmath(x.dtype)) for value in (seen, recalled, *state)]
            state = [
                b.convert(value, x.dtype) for value in self.cell(b, wide[0], wide[1], wide[2:])
            ]
            if projection:
                state[0] = linear(self.site, state[0], projection[0])
            hidden[step] = self._as_step(state[0])
        return b.concat([hidden[step] for step in sorted(hidden)], self.time), state

    def _as_step(self, hidden: Value) -> Value:
        shape = list(hidden.shape)
        shape.insert(self.time, 1)
        return self.site.builder.reshape(hidden, shape)


def _unrolled(
    site: Site,
    cell: Cell,
    x: Value,
    states,
    params,
    has_biases,
    layers,
    dropout,
    train,
    bidirectional,
    batch_first,
) -> tuple[Value, ...]:
    """states: of all layers and directions, (layers * directions, batch, width) each."""
    if train and dropout:
        raise Decline("random")
    b = site.builder
    time = 1 if batch_first else 0
    directions = 2 if bidirectional else 1
    count = layers * directions
    steps = range(x.shape[time])
    if len(steps) * count > _MAX_CELLS:
        raise Decline(f"unrolled it has {len(steps) * count} cells, more than {_MAX_CELLS}")
    per_direction = len(params) // count
    last: list[Sequence[Value]] = []
    for _ in range(layers):
        outputs = []
        for direction in range(directions):
            number = len(last)
            own = params[number * per_direction : (number + 1) * per_direction]
            state = [select(site, all_, 0, number) for all_ in states]
            one = _Direction(site, cell, time, own, has_biases)
            output, state = one.run(x, state, steps[::-1] if direction else steps)
            outputs.append(output)
            last.append(state)
        x = b.concat(outputs, 2)
    stacked = (
        b.concat([b.reshape(value, [1, *value.shape]) for value in values], 0)
        for values in zip(*last, strict=True)
    )
    return x, *stacked


@lowers("lstm.input")
def lstm(site: Site, x: Value, states: Sequence[Value], *settings):
    return _unrolled(site, _lstm_cell, x, states, *settings)


@lowers("gru.input")
def gru(site: Site, x: Value, state: Value, *settings):
    return _unrolled(site, _gru_cell, x, [state], *settings)


@lowers("rnn_tanh.input")
def rnn_tanh(site: Site, x: Value, state: Value, *settings):
    return _unrolled(site, _tanh_cell, x, [state], *settings)


@lowers("rnn_relu.input")
def rnn_relu(site: Site, x: Value, state: Value, *settings):
    return _unrolled(site, _relu_cell, x, [state], *settings)
