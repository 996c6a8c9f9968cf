# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent nets: a scan for each layer and direction, whose steps are cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from weft.frontend.builder import Builder
from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.ops.contract import linear
from weft.frontend.ops.dropout import dropped_out
from weft.frontend.ops.shape import select
from weft.frontend.packed import Run, groups_of, runs_of
from weft.frontend.table import Site, lowers

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
class Direction:
    """One direction of one layer. params: of the input, of the hidden state, their biases if there
    are any, and the projection of the hidden state, if there is one.
    """

    site: Site
    cell: Cell
    params: Sequence[Value]
    has_biases: bool

    def run(
        self, x: Value, state: Sequence[Value], reverse: bool, counting: Value | None = None
    ) -> tuple[Value, Sequence[Value]]:
        """x: (steps, batch, in). counting: whether a sequence has a step, (steps, batch); it keeps
        its state where it has none. To what the steps give, (steps, batch, out), in their own
        order, and the last state."""
        b = self.site.builder
        bias = self.params[2] if self.has_biases else None
        # What does not depend on the state is one product for all steps.
        rows = b.reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))
        given = linear(self.site, rows, self.params[0], bias)
        given = b.reshape(given, (*x.shape[:2], given.shape[1]))
        return self._scan(given, state, counting, reverse)

    def run_packed(
        self, x: Value, state: Sequence[Value], groups: Sequence[Sequence[Run]], reverse: bool
    ) -> tuple[Value, Sequence[Value]]:
        """x: (rows, in), of the steps of all groups. To what the steps give, (rows, out), and the
        last state of each sequence. Reads and leaves alone the states of sequences that do not
        reach a group."""
        b = self.site.builder
        bias = self.params[2] if self.has_biases else None
        given = linear(self.site, x, self.params[0], bias)
        outputs: list[Value] = []
        for group in reversed(groups) if reverse else groups:
            size, steps = group[0].size, sum(run.steps for run in group)
            live = [b.slice(each, 0, 0, size) for each in state]
            hidden, last = self._run_group(given, live, group, size, steps, reverse)
            state = [
                b.concat([own, b.slice(each, 0, size, each.shape[0])], 0)
                for own, each in zip(last, state, strict=True)
            ]
            rows, step = [], 0
            for run in group:
                part = b.slice(b.slice(hidden, 0, step, step + run.steps), 1, 0, run.size)
                rows.append(b.reshape(part, (run.steps * run.size, part.shape[2])))
                step += run.steps
            outputs = [*rows, *outputs] if reverse else [*outputs, *rows]
        return b.concat(outputs, 0), state

    def _run_group(self, given, live, group: Sequence[Run], size: int, steps: int, reverse: bool):
        """All steps of a group compute `size` rows; sequences that a step does not have keep their
        state."""
        b = self.site.builder
        parts = []
        for run in group:
            part = b.slice(given, 0, run.first, run.limit)
            part = b.reshape(part, (run.steps, run.size, part.shape[1]))
            parts.append(b.pad(part, (0, 0, 0), (0, size - run.size, 0), 0))
        counting = None
        if len(group) > 1:
            counts = [run.size for run in group for _ in range(run.steps)]
            counts = b.along(b.dense(torch.tensor(counts)), 0, (steps, size))
            counting = b.compare("lt", b.iota(torch.int64, (steps, size), 1), counts)
        return self._scan(b.concat(parts, 0), live, counting, reverse)

    def _scan(
        self, given: Value, state: Sequence[Value], counting: Value | None, reverse: bool
    ) -> tuple[Value, Sequence[Value]]:
        """given: by the input, (steps, batch, gates * width)."""

        def step(b: Builder, state, elements, used):
            after = self._step(b, elements[0], state, used)
            for mask in elements[1:]:
                after = [
                    b.select(b.along(mask, 0, new.shape), new, old)
                    for new, old in zip(after, state, strict=True)
                ]
            return after, [after[0]]

        sequences = [given] if counting is None else [given, counting]
        steps = given.shape[0]
        last, (hidden,) = self.site.builder.scan(
            state, sequences, self._used(), steps, step, reverse
        )
        return hidden, last

    def _used(self) -> list[Value]:
        """The parameters except those of the input."""
        return [self.params[1], *self.params[3 if self.has_biases else 2 :]]

    def _step(self, b: Builder, given: Value, state: Sequence[Value], used: Sequence[Value]):
        """used: the params but those of the input."""
        site = replace(self.site, builder=b)
        bias = used[1] if self.has_biases else None
        recalled = linear(site, state[0], used[0], bias)
        dtype = state[0].dtype
        wide = [b.convert(value, opmath(dtype)) for value in (given, recalled, *state)]
        after = [b.convert(value, dtype) for value in self.cell(b, wide[0], wide[1], wide[2:])]
        for projection in used[2 if self.has_biases else 1 :]:
            after[0] = linear(site, after[0], projection)
        return after


# A direction, the input of its layer, the initial state, and whether it goes backwards, to what all
# steps give and the last state.
RunDirection = Callable[[Direction, Value, Sequence[Value], bool], tuple[Value, Sequence[Value]]]


def _recurrent(site: Site, cell: Cell, x: Value, *settings) -> tuple[Value, ...]:
    """settings: as `layers_of` takes them, and whether the batch comes ahead of the steps."""
    *settings, batch_first = settings
    if x.rank != 3:
        raise Decline("a recurrent net whose input has no batch")
    if not batch_first:
        return layers_of(site, cell, Direction.run, x, *settings)
    b = site.builder
    x, *last = layers_of(site, cell, Direction.run, b.transpose(x, (1, 0, 2)), *settings)
    return b.transpose(x, (1, 0, 2)), *last


def layers_of(
    site: Site,
    cell: Cell,
    run: RunDirection,
    x: Value,
    states,
    params,
    has_biases,
    layers,
    dropout,
    train,
    bidirectional,
    drop: Callable[[Value, float], Value] | None = None,
) -> tuple[Value, ...]:
    """x: (..., in). states: of all layers and directions, (layers * directions, batch, width) each.
    drop: some of what a layer gives, with this probability. To what the last layer gives, and the
    last states."""
    b = site.builder
    directions = 2 if bidirectional else 1
    count = layers * directions
    per_direction = len(params) // count
    last: list[Sequence[Value]] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            number = len(last)
            own = params[number * per_direction : (number + 1) * per_direction]
            state = [select(site, all_, 0, number) for all_ in states]
            one = Direction(site, cell, own, has_biases)
            output, state = run(one, x, state, direction == 1)
            outputs.append(output)
            last.append(state)
        x = b.concat(outputs, x.rank - 1)
        if train and dropout and layer + 1 < layers:
            x = dropped_out(site, x, dropout)[0] if drop is None else drop(x, dropout)
    stacked = (
        b.concat([b.reshape(value, [1, *value.shape]) for value in values], 0)
        for values in zip(*last, strict=True)
    )
    return x, *stacked


@lowers("lstm.input")
def lstm(site: Site, x: Value, states: Sequence[Value], *settings):
    return _recurrent(site, _lstm_cell, x, states, *settings)


@lowers("gru.input")
def gru(site: Site, x: Value, state: Value, *settings):
    return _recurrent(site, _gru_cell, x, [state], *settings)


@lowers("rnn_tanh.input")
def rnn_tanh(site: Site, x: Value, state: Value, *settings):
    return _recurrent(site, _tanh_cell, x, [state], *settings)


@lowers("rnn_relu.input")
def rnn_relu(site: Site, x: Value, state: Value, *settings):
    return _recurrent(site, _relu_cell, x, [state], *settings)


CELLS = {"lstm": _lstm_cell, "gru": _gru_cell, "rnn_tanh": _tanh_cell, "rnn_relu": _relu_cell}


@lowers("weft_packed.recurrent.default")
def packed(site: Site, kind: str, x: Value, batch_sizes: Sequence[int], *settings):
    groups = groups_of(runs_of(batch_sizes))

    def run(one: Direction, x: Value, state: Sequence[Value], reverse: bool):
        return one.run_packed(x, state, groups, reverse)

    return layers_of(site, CELLS[kind], run, x, *settings)
