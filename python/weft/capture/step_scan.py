# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes of a traced graph that several steps of a loop have left there → one scan of all its steps.

The scan is PyTorch's own (`torch._higher_order_ops.scan`), written into the graph directly: what is
the same in all steps is an invariant, what a step reads of the one before a state, and what moves
along a tensor by the step a sequence.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._higher_order_ops.scan import scan_op
from torch._higher_order_ops.utils import unique_graph_id
from torch.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    get_proxy_mode,
    set_meta,
)

from weft.capture.step_operations import gives_views, is_plain
from weft.capture.traced_nodes import (
    NotRepeated,
    Place,
    are_equal_constants,
    elements_of,
    emit,
    place_of,
    tracer_now,
)

_aten = torch.ops.aten
# Operations whose second argument may be the number of a step, as those of two tensors. True: they
# take them the other way round.
_OF_NUMBERS = {
    **{
        getattr(_aten, name).Scalar: (getattr(_aten, name).Tensor, False)
        for name in ("lt", "le", "gt", "ge", "eq", "ne")
    },
    **{
        getattr(_aten, name).Tensor: (getattr(_aten, name).Tensor, False)
        for name in ("add", "sub", "mul", "div")
    },
    _aten.rsub.Scalar: (_aten.sub.Tensor, True),
}
_MOST_OF_WINDOW = 16  # elements that a step reads one by one
# In other types a number and a tensor of it would be rounded, or wrap, otherwise.
_WITH_NUMBERS = (torch.float32, torch.float64, torch.int64)


# What a step reads, of a node of the last traced step.
@dataclass(frozen=True)
class _OfStep:
    back: int
    number: int


@dataclass(frozen=True)
class _Fixed:
    node: torch.fx.Node


@dataclass(frozen=True)
class _Moving:
    """Element `first + delta * step` of the dim. width: the dim stays, and has so many elements
    from there on."""

    tensor: torch.fx.Node
    dim: int
    first: int
    delta: int
    width: int = 0

    @property
    def sequence(self) -> tuple:
        return (self.tensor, self.dim, self.first, self.delta)

    def at(self, step: int) -> int:
        return self.first + self.delta * step

    def elements(self) -> list[_Moving]:
        return [replace(self, first=self.first + j, width=0) for j in range(self.width)]

    def blocks(self, begin: int, end: int) -> _Moving | None:
        """The same as one element of the tensor's blocks at the steps from begin to end; None where
        those overlap, or leave a gap."""
        if abs(self.delta) != self.width:
            return None
        low, high = sorted([self.at(begin), self.at(end - 1)])
        part = emit(_aten.slice.Tensor, self.tensor, self.dim, low, high + self.width)
        shape = [*part.meta["val"].shape]
        shape[self.dim : self.dim + 1] = [end - begin, self.width]
        made = emit(_aten.reshape.default, part, shape)
        return _Moving(made, self.dim, (self.first - low) // self.width, self.delta // self.width)


def _leaves(node: torch.fx.Node) -> list[Any]:
    found: list[Any] = []
    torch.fx.node.map_aggregate((node.args, node.kwargs), found.append)
    return found


class StepNodes:
    """first: the step from which on they are alike. limit: how many there can be, counted from 0.

    Raises: NotRepeated, where the steps' nodes are no steps of a scan.
    """

    def __init__(self, steps: Sequence[list[torch.fx.Node]], back: int) -> None:
        """back: how many steps before at most a step reads."""
        self.steps = steps
        self._numbers = {
            node: (step, number)
            for step, nodes in enumerate(steps)
            for number, node in enumerate(nodes)
        }
        self._last = len(steps) - 1
        nodes = steps[-1]
        for step in steps[1:]:
            if _operations(step) != _operations(nodes):
                raise NotRepeated("steps have other operations")
        if not all(map(is_plain, nodes)):
            raise NotRepeated("steps do more than compute tensors")
        self.limit = 1 << 62
        self._fixed: set[int] = set()
        self._read: list[list[Any]] = []
        self._moves: dict[int, _Moving] = {}
        self._counts: dict[int, tuple[int, int]] = {}  # the first number, and by how much it grows
        for number, node in enumerate(nodes):
            self._read.append(self._sources(number, node))
        self.first = back if back > 1 else 0
        if self.first == 0 and not self._begins_at(0):
            self.first = 1
        if not self._begins_at(self.first):
            raise NotRepeated("steps begin unlike the ones behind them")

    def _sources(self, number: int, node: torch.fx.Node) -> list[Any]:
        """For each leaf of the node's arguments where it comes from, None for plain values."""
        if node.op == "get_attr":
            if not are_equal_constants([step[number] for step in self.steps]):
                raise NotRepeated("steps have other constants")
            self._fixed.add(number)
            return []
        rows = [_leaves(step[number]) for step in self.steps[1:]]
        if any(len(row) != len(rows[0]) for row in rows):
            raise NotRepeated("steps have other arguments")
        sources, moving = [], []
        for leaf in range(len(rows[0])):
            values = [row[leaf] for row in rows]
            if isinstance(values[-1], torch.fx.Node):
                sources.append(self._source(values))
            else:
                sources.append(None)
                if any(type(a) is not type(values[-1]) or a != values[-1] for a in values):
                    moving.append(leaf)
        inputs = [each for each in sources if each is not None]
        known = all(
            isinstance(each, _Fixed) or (isinstance(each, _OfStep) and self._is_fixed(each))
            for each in inputs
        )
        if moving == [1] and _takes_number(node, rows):
            self._counts[number] = self._counted([row[1] for row in rows])
        elif moving:
            if not known or any(type(row[leaf]) is not int for row in rows for leaf in moving):
                raise NotRepeated("steps have other arguments, or select from what changes")
            self._moves[number] = self._moved(node, rows, moving)
        elif known and inputs:
            self._fixed.add(number)
        return sources

    def _is_fixed(self, source: _OfStep) -> bool:
        return source.back == 0 and source.number in self._fixed

    def _source(self, values: list[Any]) -> _OfStep | _Fixed | _Moving:
        """values: a leaf at the steps from the second on."""
        last, count = values[-1], len(values)
        if (place := self._numbers.get(last)) is not None:
            found = _OfStep(self._last - place[0], place[1])
            for at, value in enumerate(values, 1):
                if at >= found.back and self._numbers.get(value) != (at - found.back, place[1]):
                    raise NotRepeated("steps read others of their values")
            return found
        if all(value is last for value in values):
            return _Fixed(last)
        places = [place_of(value) for value in values]
        if count < 2 or places[-1] is None or places[-2] is None:
            raise NotRepeated("steps read tensors that are no sequence")
        end = places[-1]
        delta = end.at - places[-2].at
        for at, each in enumerate(places):
            if each != replace(end, at=end.at - delta * (count - 1 - at)):
                raise NotRepeated("steps read elements out of order")
        found = _Moving(end.tensor, end.dim, end.at - delta * count, delta, end.width)
        self._bound(found)
        return found

    def _counted(self, numbers: list[int]) -> tuple[int, int]:
        deltas = {b - a for a, b in itertools.pairwise(numbers)}
        if len(deltas) != 1:
            raise NotRepeated("numbers of steps follow no rule")
        (delta,) = deltas
        return numbers[-1] - delta * self._last, delta

    def _moved(self, node: torch.fx.Node, rows: list[list[Any]], moving: list[int]) -> _Moving:
        source = node.args[0]
        number = self._numbers.get(source)
        tensor = source if number is None else self.steps[-1][number[1]]
        numbers = [[row[leaf] for leaf in moving] for row in rows]
        deltas = {tuple(b - a for a, b in zip(*each)) for each in itertools.pairwise(numbers)}
        if len(deltas) != 1 or len(set(*deltas)) != 1:
            raise NotRepeated("numbers of steps follow no rule")
        ((delta, *_),) = deltas
        width = _width_of(node, moving)
        dim = node.args[1] % source.meta["val"].dim()
        found = _Moving(tensor, dim, node.args[2] - delta * self._last, delta, width)
        self._bound(found)
        return found

    def _bound(self, moving: _Moving) -> None:
        """Elements are counted from the first one on, and end with the tensor."""
        size = moving.tensor.meta["val"].shape[moving.dim]
        at, delta = moving.at(self._last), moving.delta
        if at < 0 or moving.at(1) < 0:
            raise NotRepeated("steps count from the end")
        if at + max(moving.width, 1) > size:
            raise NotRepeated("steps read beyond the end")
        more = (size - max(moving.width, 1) - at) // delta if delta > 0 else at // -delta
        self.limit = min(self.limit, self._last + 1 + more)

    def _begins_at(self, first: int) -> bool:
        """Whether that step is like the later ones, but for states."""
        step = self.steps[first]
        if _operations(step) != _operations(self.steps[-1]):
            return False
        self._initial: dict[tuple[int, int], torch.fx.Node] = {}
        for number, node in enumerate(step):
            leaves, last = _leaves(node), _leaves(self.steps[-1][number])
            if len(leaves) != len(last):
                return False
            for at, (leaf, like) in enumerate(zip(leaves, last)):
                if not self._begins_with(first, number, at, leaf, like):
                    return False
        return True

    def _begins_with(self, first: int, number: int, at: int, leaf: Any, like: Any) -> bool:
        """Whether that leaf of a node of the step is what goes on as `like`, of the last step."""
        source = self._read[number][at]
        if isinstance(source, _OfStep):
            place = self._numbers.get(leaf)
            if source.back == 0 or first >= source.back:
                return place == (first - source.back, source.number)
            is_same = self._initial.setdefault((source.back, source.number), leaf) is leaf
            return is_same and place is None and _alike(leaf, self.steps[-1][source.number])
        if isinstance(source, _Fixed):
            return leaf is source.node
        if isinstance(source, _Moving):
            start = source.at(first)
            where = Place(source.tensor, source.dim, start, source.width)
            return start >= 0 and place_of(leaf) == where
        if number in self._counts and at == 1:
            start, delta = self._counts[number]
            return type(leaf) is int and leaf == start + delta * first
        is_slice = self.steps[-1][number].target is _aten.slice.Tensor
        if number in self._moves and (at == 2 or (at == 3 and is_slice)):
            moving = self._moves[number]
            return moving.at(first) >= 0 and leaf == like - moving.delta * (self._last - first)
        return type(leaf) is type(like) and leaf == like

    @property
    def states(self) -> set[int]:
        """The numbers of the nodes that the next step reads."""
        sources = (source for row in self._read for source in row)
        return {each.number for each in sources if isinstance(each, _OfStep) and each.back == 1}

    def is_alone(self, number: int) -> bool:
        """Whether the node's tensor shares no memory with others, and lies as one that was copied:
        it may be told apart from it otherwise."""
        node = self.steps[-1][number]
        return not gives_views(node) and node.meta["val"].is_contiguous()

    def scan(
        self, end: int, wanted: Sequence[int]
    ) -> tuple[dict[int, torch.fx.Node], dict[int, torch.fx.Node]]:
        """A scan of the steps from `first` to `end`: for each wanted number of a node its values
        at all steps, and for states the last one."""
        count = end - self.first
        states: dict[tuple[int, int], torch.fx.Node] = {}  # the number of steps back, and the node
        sequences: dict[tuple, torch.fx.Node] = {}
        invariants: dict[torch.fx.Node, torch.fx.Node] = {}
        body = torch.fx.Graph()
        values: dict[int, Any] = {}

        def input_of(kinds: dict, key: Any, like: Any) -> torch.fx.Node:
            if key not in kinds:
                number = len(states) + len(sequences) + len(invariants)
                kinds[key] = body.placeholder(f"given_{number}")
                kinds[key].meta["val"] = like
            return kinds[key]

        def invariant(node: torch.fx.Node) -> torch.fx.Node:
            return input_of(invariants, node, node.meta["val"])

        windows: dict[_Moving, torch.fx.Node] = {}

        def element(moving: _Moving) -> torch.fx.Node:
            if moving.width:
                if moving not in windows:
                    windows[moving] = window(moving)
                return windows[moving]
            value = moving.tensor.meta["val"]
            with disable_proxy_modes_tracing(), torch._C.DisableTorchFunction():
                like = value.select(moving.dim, 0)
            return input_of(sequences, moving.sequence, like)

        def window(moving: _Moving) -> torch.fx.Node:
            if moving.width > 1 and (block := moving.blocks(self.first, end)) is not None:
                return element(block)
            if moving.width > _MOST_OF_WINDOW:
                raise NotRepeated("steps read large windows")
            elements = [element(each) for each in moving.elements()]
            made = body.call_function(_aten.stack.default, (elements, moving.dim))
            with disable_proxy_modes_tracing(), torch._C.DisableTorchFunction():
                made.meta["val"] = torch.stack([each.meta["val"] for each in elements], moving.dim)
            return made

        def value_of(source: Any) -> torch.fx.Node:
            if isinstance(source, _Fixed):
                return invariant(source.node)
            if isinstance(source, _Moving):
                return element(source)
            if source.back == 0:
                return values[source.number]
            like = self.steps[-1][source.number].meta["val"]
            for back in range(1, source.back):
                input_of(states, (back, source.number), like)
            return input_of(states, (source.back, source.number), like)

        counted: dict[tuple[int, int], torch.fx.Node] = {}

        def count_of(number: int) -> torch.fx.Node:
            """The number that a step has in that node."""
            start, delta = self._counts[number]
            if (start, delta) not in counted:
                begin = start + delta * self.first
                bounds = (begin, begin + delta * count, delta)
                counted[start, delta] = emit(_aten.arange.start_step, *bounds)
            return element(_Moving(counted[start, delta], 0, -self.first, 1))

        for number, node in enumerate(self.steps[-1]):
            if number in self._fixed:
                # Of a constant, only what copies it has a value.
                values[number] = invariant(node) if "val" in node.meta else None
                continue
            if number in self._moves:
                values[number] = element(self._moves[number])
                continue
            sources = iter(self._read[number])

            def replaced(leaf: Any, sources: Iterator[Any] = sources) -> Any:
                source = next(sources)
                return leaf if source is None else value_of(source)

            args, kwargs = torch.fx.node.map_aggregate((node.args, node.kwargs), replaced)
            target = node.target
            if number in self._counts:
                target, is_reversed = _OF_NUMBERS[target]
                pair = (args[0], count_of(number))
                args = (*(pair[::-1] if is_reversed else pair), *args[2:])
            values[number] = body.call_function(target, args, kwargs)
            values[number].meta.update(
                {key: node.meta[key] for key in ("val", "stack_trace") if key in node.meta}
            )
        after = [
            values[number] if back == 1 else states[back - 1, number] for back, number in states
        ]
        body.output([*after, *(values[number] for number in wanted)])
        if not sequences:  # a scan is as long as they are
            if not states:
                raise NotRepeated("steps that depend on nothing")
            some = self._initial_of(*next(iter(states)))
            counted = emit(_aten.new_zeros.default, some, [count])
            element(_Moving(counted, 0, -self.first, 1))
        # The inputs come in the order states, sequences, invariants.
        last = None
        for kinds in (states, sequences, invariants):
            for place in kinds.values():
                if last is None:
                    body._root.append(place)
                else:
                    last.append(place)
                last = place
        given = (
            [self._initial_of(*key) for key in states],
            [
                elements_of(tensor, dim, first + delta * self.first, delta, count)
                for tensor, dim, first, delta in sequences
            ],
            list(invariants),
        )
        scan = self._emit_scan(body, given, after, [values[each] for each in wanted], count)
        outputs = [emit(operator.getitem, scan, at) for at in range(len(after) + len(wanted))]
        ends = {number: output for (back, number), output in zip(states, outputs) if back == 1}
        return dict(zip(wanted, outputs[len(after) :])), ends

    def _initial_of(self, back: int, number: int) -> torch.fx.Node:
        if self.first >= back:
            return self.steps[self.first - back][number]
        return self._initial[back, number]

    def _emit_scan(
        self,
        body: torch.fx.Graph,
        given: tuple[list, list, list],
        after: list[torch.fx.Node],
        stacked: list[torch.fx.Node],
        count: int,
    ) -> torch.fx.Node:
        mode, tracer = get_proxy_mode(), tracer_now()
        module = torch.fx.GraphModule(torch.nn.Module(), body)
        _, name = unique_graph_id(mode, prefix="scan_combine_graph")
        tracer.root.register_module(name, module)
        proxies = torch.fx.node.map_arg(given, lambda node: torch.fx.Proxy(node, tracer))
        proxy = tracer.create_proxy("call_function", scan_op, (module, *proxies), {}, name="scan")
        with disable_proxy_modes_tracing(), torch._C.DisableTorchFunction(), torch.no_grad():
            values = [node.meta["val"] for node in after]
            for node in stacked:
                like = node.meta["val"]
                values.append(like.new_empty((count, *like.shape)))
            set_meta(proxy, tuple(values))
        node: torch.fx.Node = proxy.node
        return node


def _width_of(node: torch.fx.Node, moving: list[int]) -> int:
    """How many elements a selection takes whose arguments at these places are a step's; 0 for one
    without its dim. Raises: NotRepeated, for what is none."""
    if node.target is _aten.select.int and moving == [2]:
        return 0
    if node.target is _aten.slice.Tensor and moving == [2, 3] and len(node.args) == 4:
        _, _, begin, end = node.args
    elif node.target is _aten.narrow.default and moving == [2]:
        begin, end = node.args[2], node.args[2] + node.args[3]
    else:
        raise NotRepeated("numbers of a step change")
    if end <= begin:
        raise NotRepeated("steps select nothing")
    return end - begin


def _takes_number(node: torch.fx.Node, rows: list[list[Any]]) -> bool:
    """Whether its second argument, a number in all steps, may be a tensor of that number."""
    given = node.args[0] if node.args else None
    return (
        node.target in _OF_NUMBERS
        and isinstance(given, torch.fx.Node)
        and given.meta["val"].dtype in _WITH_NUMBERS
        and all(type(row[1]) is int for row in rows)
    )


def _operations(nodes: Sequence[torch.fx.Node]) -> list[Any]:
    """Equal for steps that do the same; a constant has a name of its own in each."""
    return [each.op if each.op == "get_attr" else each.target for each in nodes]


def _alike(a: torch.fx.Node, b: torch.fx.Node) -> bool:
    a, b = a.meta["val"], b.meta["val"]
    return a.shape == b.shape and a.dtype == b.dtype
