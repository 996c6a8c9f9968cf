# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop whose steps are skipped: what its calls are expected to be, and what they give."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager
from torch.utils._mode_utils import no_dispatch

from weft.capture.step_calls import (
    Call,
    Unknown,
    flat,
    outputs_of,
    own_outputs,
    settings,
    tensors_in,
)
from weft.capture.step_operations import gives_views, views_of
from weft.capture.step_scan import StepNodes
from weft.capture.traced_nodes import (
    NotRepeated,
    element,
    elements_of,
    is_of_element,
    node_behind,
    nodes_between,
    track,
    track_as_own,
)

# Functions whose whole numbers may differ from step to step.
_SELECTING = frozenset(
    [torch.Tensor.__getitem__, torch.Tensor.select, torch.select, torch.Tensor.narrow, torch.narrow]
)
# And those that compute with them.
_COUNTING = frozenset(
    [
        *(getattr(torch.Tensor, f"__{name}__") for name in ("lt", "le", "gt", "ge", "eq", "ne")),
        *(getattr(torch.Tensor, f"__{name}__") for name in ("add", "sub", "mul", "truediv")),
        *(getattr(torch.Tensor, f"__r{name}__") for name in ("add", "sub", "mul")),
        *(getattr(torch.Tensor, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")),
        *(getattr(torch.Tensor, name) for name in ("add", "sub", "mul", "div")),
        *(getattr(torch, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")),
        *(getattr(torch, name) for name in ("add", "sub", "mul", "div")),
    ]
)


class Ended(Exception):
    """A call is not the one that a step goes on with."""


# What a leaf is at a step: the same object, or number, at all steps.
@dataclass(frozen=True)
class _Same:
    value: Any


@dataclass(frozen=True)
class _Number:
    first: int
    delta: int


@dataclass(frozen=True)
class _OfStep:
    """An output of a call of a step, `back` steps before."""

    back: int
    call: int
    output: int


@dataclass(frozen=True)
class _Element:
    """Output `first`, then `first + delta`, and so on, of a call ahead of the loop."""

    source: list[FakeTensor] = field(compare=False)
    first: int
    delta: int


@dataclass(frozen=True)
class _OfLoop:
    """What an earlier loop made at its step `first`, then `first + delta`, and so on."""

    loop: SkippedLoop = field(compare=False)
    call: int
    output: int
    first: int
    delta: int


_Leaf = _Same | _Number | _OfStep | _Element | _OfLoop


@dataclass
class Made:
    """That a tensor is an output of a call of a step. node: by which the tracer knows it, too, as a
    tensor of its own."""

    loop: SkippedLoop
    step: int
    call: int
    output: int
    node: torch.fx.Node | None = None

    @property
    def place(self) -> tuple[SkippedLoop, int, int]:
        return self.loop, self.call, self.output


def step_of(tensor: Any) -> Made | None:
    return vars(tensor).get("_weft_step") if isinstance(tensor, FakeTensor) else None


def as_made(tensor: Any) -> Made | None:
    """The same, if nothing has been done to the tensor since, such as `detach_`."""
    made = step_of(tensor)
    if made is None or made.node is None or made.node is node_behind(tensor):
        return made
    return None


class SkippedLoop:
    """The steps of a loop. Raises: NotRepeated, where they are no such loop."""

    def __init__(self, ahead: Sequence[Call], steps: list[list[Call]]) -> None:
        self._earlier = {
            id(each): (call.outputs, number) for call in ahead for number, each in own_outputs(call)
        }
        self._made = {
            id(each): (step, place, number)
            for step, calls in enumerate(steps)
            for place, call in enumerate(calls)
            for number, each in own_outputs(call)
        }
        self._calls = steps[-1]
        last = len(steps) - 1
        self._leaves = [
            [self._leaf(steps, place, leaf) for leaf in range(len(call.leaves))]
            for place, call in enumerate(self._calls)
        ]
        back = [each.back for row in self._leaves for each in row if isinstance(each, _OfStep)]
        self._back = max(back, default=0)
        calls = [call for each in steps for call in each]
        between = [nodes_between(a.after, b.before) for a, b in itertools.pairwise(calls)]
        if not all(map(is_of_element, itertools.chain(*between))):
            raise NotRepeated("something happens between calls")
        self._nodes = StepNodes([_own_nodes(each) for each in steps], self._back)
        numbers = {node: at for at, node in enumerate(self._nodes.steps[last])}
        self._behind: list[dict[int, int]] = []
        for call in self._calls:
            if any(node_behind(each) not in numbers for _, each in own_outputs(call)):
                raise NotRepeated("a step gives what it has not computed")
            self._behind.append({at: numbers[node_behind(each)] for at, each in own_outputs(call)})
        self._like = [
            [Like(y) if x is None else x for x, y in zip(call.passed, call.outputs, strict=True)]
            for call in self._calls
        ]
        # What the calls of the last steps gave.
        self._recent: deque[list[list[FakeTensor]]] = deque(maxlen=self._back + 1)
        self._recent.extend([call.outputs for call in each] for each in steps)
        self._traced = steps
        self._settings = settings()
        self._step, self._place = last + 1, 0
        self._current: list[list[FakeTensor]] = []
        self._partial: list[tuple[Callable, tuple, dict]] = []
        self._alive: list[tuple[weakref.ref, int, int]] = []  # with step and number of the node
        self._stacked: dict[int, torch.fx.Node] = {}
        self._ends: dict[int, torch.fx.Node] = {}

    def _leaf(self, steps: list[list[Call]], place: int, leaf: int) -> _Leaf:
        values = [calls[place].leaves[leaf] for calls in steps]
        last, one_before = values[-1], values[-2]
        count = len(values)
        if isinstance(last, int):
            delta = last - one_before
            if any(b - a != delta for a, b in itertools.pairwise(values[1:])):
                raise NotRepeated("numbers of a step follow no rule")
            if delta and self._calls[place].function not in _SELECTING | _COUNTING:
                raise NotRepeated("numbers of a step change")
            return _Number(last - delta * (count - 1), delta)
        if (made := self._made.get(id(last))) is not None:
            found: _Leaf = _OfStep(count - 1 - made[0], made[1], made[2])
            expected = [(at - found.back, found.call, found.output) for at in range(count)]
            if any(
                self._made.get(id(value)) != expected[at]
                for at, value in enumerate(values)
                if at >= max(found.back, 1)
            ):
                raise NotRepeated("steps read others of their tensors")
            return found
        if all(value is last for value in values[1:]):
            return _Same(last)
        if (step := as_made(last)) is not None:
            before = as_made(one_before)
            delta = step.step - before.step if before is not None else 0
            found = _OfLoop(*step.place, step.step - delta * (count - 1), delta)
            if any(not _is_of(v, found, k) for k, v in enumerate(values) if k):
                raise NotRepeated("steps read results of another loop out of order")
            return found
        known = [self._earlier.get(id(value)) for value in values]
        if known[-1] is None or known[-2] is None or known[-1][0] is not known[-2][0]:
            raise NotRepeated("steps read tensors that are no sequence")
        source, at = known[-1]
        delta = at - known[-2][1]
        first = at - delta * (count - 1)
        if any(
            each is None or each[0] is not source or each[1] != first + delta * k
            for k, each in enumerate(known)
            if k
        ):
            raise NotRepeated("steps read elements of a sequence out of order")
        return _Element(source, first, delta)

    def start(self) -> None:
        """Steps are skipped from here on: what the traced ones made is as if they had been."""
        for step, calls in enumerate(self._traced):
            if step >= self._nodes.first:
                self._mark(step, [call.outputs for call in calls])
        self._traced, self._earlier, self._made = [], {}, {}
        for call in self._calls:
            call.outputs, call.leaves = [], []

    def _mark(self, step: int, made: list[list[FakeTensor]]) -> None:
        for call, outputs in enumerate(made):
            for output, at in self._behind[call].items():
                vars(outputs[output])["_weft_step"] = Made(self, step, call, output)
                self._alive.append((weakref.ref(outputs[output]), step, at))

    def expects(self, function: Callable) -> bool:
        """Whether the next call may be one of it."""
        return function == self._calls[self._place].function

    def next(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """What the next call gives, if it is the expected one. Raises: Ended."""
        place, step = self._place, self._step
        call = self._calls[place]
        if function != call.function or (place == 0 and step >= self._nodes.limit):
            raise Ended
        with torch._C.DisableTorchFunction():
            form: list[Any] = []
            leaves: list[Any] = []
            try:
                flat((args, kwargs), form, leaves)
            except Unknown:
                raise Ended from None
            if form != call.form or not all(map(self._is, leaves, self._leaves[place])):
                raise Ended
            try:
                if self._settings != settings():
                    raise Ended
            except Unknown:
                raise Ended from None
            likes = self._like[place]
            outputs = [leaves[x] if isinstance(x, int) else x.another() for x in likes]
        self._current.append(outputs)
        self._partial.append((function, args, kwargs))
        self._place += 1
        if self._place == len(self._calls):
            self._mark(step, self._current)
            self._recent.append(self._current)
            self._current, self._partial = [], []
            self._place, self._step = 0, step + 1
        return outputs[0] if call.container is None else call.container(outputs)

    def _is(self, value: Any, leaf: _Leaf) -> bool:
        step = self._step
        if isinstance(leaf, _Same):
            return value is leaf.value
        if isinstance(leaf, _Number):
            return value == leaf.first + leaf.delta * step
        if isinstance(leaf, _OfStep):
            made = self._current if leaf.back == 0 else self._recent[-leaf.back]
            return value is made[leaf.call][leaf.output]
        if isinstance(leaf, _Element):
            at = leaf.first + leaf.delta * step
            return 0 <= at < len(leaf.source) and value is leaf.source[at]
        return _is_of(value, leaf, step)

    def alive(self) -> list[FakeTensor]:
        return [tensor for ref, *_ in self._alive if (tensor := ref()) is not None]

    def end(self) -> None:
        """Makes the scan of all whole steps, and calls again what was skipped behind them."""
        self._recent.clear()
        states, last = self._nodes.states, self._step - 1
        wanted = {
            at
            for ref, step, at in self._alive
            if ref() is not None and (step < last or at not in states)
        }
        self._stacked, self._ends = self._nodes.scan(self._step, sorted(wanted))
        current, partial = self._current, self._partial
        self._current, self._partial = [], []
        for place, ((function, args, kwargs), made) in enumerate(
            zip(partial, current, strict=True)
        ):
            for tensor in tensors_in((args, kwargs)):
                if (of := step_of(tensor)) is not None:
                    of.loop.resolve(tensor)
            again, _ = outputs_of(function(*args, **kwargs))
            for at in self._behind[place]:
                track(made[at], node_behind(again[at]))

    def is_alone(self, tensor: FakeTensor) -> bool:
        made = step_of(tensor)
        assert made is not None
        return self._nodes.is_alone(self._behind[made.call][made.output])

    def traced_nodes(self, tensor: FakeTensor) -> list[torch.fx.Node]:
        """Those that stand for the tensor in the steps that were traced."""
        made = step_of(tensor)
        assert made is not None
        number = self._behind[made.call][made.output]
        return [step[number] for step in self._nodes.steps[1:]]

    def is_view(self, tensor: FakeTensor) -> bool:
        return gives_views(self.traced_nodes(tensor)[-1])

    def views_of(self, tensor: FakeTensor) -> set[torch.fx.Node]:
        """Those nodes that give views of it there."""
        return set().union(*map(views_of, self.traced_nodes(tensor)))

    def resolve(self, tensor: FakeTensor) -> None:
        """Makes the tensor known to the tracer."""
        made = step_of(tensor)
        assert made is not None
        if made.node is None:
            at = self._behind[made.call][made.output]
            if not self._nodes.is_alone(at):
                raise NotRepeated("a view that a step made is read behind the loop")
            stacked = self._stacked.get(at)
            if stacked is None:
                made.node = self._ends[at]
            else:
                made.node = element(stacked, made.step - self._nodes.first)
            track_as_own(tensor, made.node)

    def values(self, made: Made, count: int, delta: int) -> torch.fx.Node:
        """(count, ...): an output at that step, `delta` steps behind it, and so on."""
        stacked = self._stacked[self._behind[made.call][made.output]]
        return elements_of(stacked, 0, made.step - self._nodes.first, delta, count)


def _own_nodes(calls: Sequence[Call]) -> list[torch.fx.Node]:
    """The nodes of a step, without those of what it reads of earlier loops."""
    nodes = nodes_between(calls[0].before, calls[-1].after)
    return [each for each in nodes if not is_of_element(each)]


def _is_of(value: Any, leaf: _OfLoop, step: int) -> bool:
    made = as_made(value)
    if made is None or made.place != (leaf.loop, leaf.call, leaf.output):
        return False
    return made.step == leaf.first + leaf.delta * step


class Like:
    """Makes tensors that look as another one does."""

    def __init__(self, tensor: FakeTensor, gradient: bool | None = None) -> None:
        with torch._C.DisableTorchFunction():
            self._mode, self._device = tensor.fake_mode, tensor.fake_device
            self._form = tuple(tensor.shape), tensor.stride(), tensor.dtype
            self._gradient = tensor.requires_grad if gradient is None else gradient

    def another(self) -> FakeTensor:
        shape, strides, dtype = self._form
        with in_kernel_invocation_manager(self._mode), no_dispatch():
            made = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        another = FakeTensor(self._mode, made, self._device, requires_grad=self._gradient)
        vars(another)["_weft_stands_in"] = True
        return another


def stands_in(tensor: FakeTensor) -> bool:
    """Whether it was made so, and has no history that autograd knows."""
    return "_weft_stands_in" in vars(tensor)
