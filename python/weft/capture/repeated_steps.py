# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of Python whose steps do the same again and again, traced for as many steps as show it.

PyTorch takes a millisecond or two to trace an operation. Once a number of steps called the same
functions, on operands that are the same, of the step before, or the next element of a sequence, the
following ones are compared with them alone: a call that is the expected one gets tensors like those
of the step before, and nothing is traced. When a call is another one, or the program ends, all
these steps become one scan (`step_scan.py`) of the traced graph.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.overrides import TorchFunctionMode, _pop_mode_temporarily

from weft.capture.growing_tensors import CATS, GrowingTensors
from weft.capture.in_place_calls import InPlaceCalls, is_intermediate, out_of_place
from weft.capture.row_buffers import RowBuffers
from weft.capture.skipped_loop import Ended, Like, SkippedLoop, as_made, step_of
from weft.capture.step_calls import (
    Call,
    Unknown,
    flat,
    looks_of,
    outputs_of,
    own_outputs,
    settings,
    tensors_in,
)
from weft.capture.step_operations import gives_views, has_few_elements, is_elementwise
from weft.capture.traced_nodes import (
    NotRepeated,
    interleaved,
    is_of_constant,
    joined,
    node_behind,
    nodes_between,
    track_as_own,
    unsqueezed,
)

# Steps that are traced, ahead of which none is skipped: shorter loops are left to the compiler.
FEWEST = 12
# Of steps that are elementwise alone, and ops of those of many elements: so many are fused into a
# few kernels (RollLoops.cpp).
_FEWEST_ELEMENTWISE = 64
_MOST_FUSED_OPS = 1024
# Of both in a program for several lengths, whose sequences are the shorter the more it serves: as
# many as show that a state is one, and a sequence.
_FEWEST_OF_LENGTHS = 5
_MOST_PERIOD = 2048  # calls in a step
_MOST_OF_KIND = 12  # calls of one kind within a step that are looked at for the step's length
_MOST_ATTEMPTS = 16
_MOST_OF_STEP = 4  # tensors that a step gives to a list

_QUESTIONS = frozenset(
    [
        *(
            getattr(torch.Tensor, name).__get__
            for name in ("shape", "dtype", "device", "ndim", "layout", "requires_grad")
        ),
        *(
            getattr(torch.Tensor, name)
            for name in ("size", "dim", "numel", "stride", "is_contiguous", "__len__")
        ),
        *(getattr(torch.Tensor, name) for name in ("is_floating_point", "is_complex")),
    ]
)
_ASKS_FOR_GRADIENTS = torch.Tensor.requires_grad.__get__
_JOINING = {torch.stack: True, **dict.fromkeys(CATS, False)}


class LoopOverSize(Exception):
    """A loop was found, and a size that was to be a symbol is a number."""


class RepeatedSteps(TorchFunctionMode):
    """Within it, the steps of loops are skipped once they are known. found: loops so far. noticed:
    whether calls have repeated, be it as steps that can be skipped or not. symbols: sizes that are
    to be symbols: the trace ends at a loop that finds numbers among them. numbers: how many."""

    def __init__(self, of_lengths: bool = False) -> None:
        """of_lengths: the program is to be one for several lengths of its loops."""
        super().__init__()
        self._fewest = _FEWEST_OF_LENGTHS if of_lengths else FEWEST
        self._of_lengths = of_lengths
        self._fewest_elementwise = _FEWEST_OF_LENGTHS if of_lengths else _FEWEST_ELEMENTWISE
        self.found = 0
        self.noticed = False
        self.symbols: list[torch.SymInt] = []
        self.numbers = 0
        self._calls: list[Call] = []
        self._kinds: list[int] = []
        self._known: dict[Any, int] = {}
        self._places: dict[int, deque[int]] = {}
        self._runs: dict[int, int] = {}  # by period: calls like the ones a period before
        self._attempts = 0
        self._doubt = False
        self._begin: tuple[int, int] | None = None  # where a loop's steps begin, and its period
        self._loop: SkippedLoop | None = None  # whose steps are skipped
        self._loops: list[SkippedLoop] = []
        self._buffers = RowBuffers(self._called)
        self._growing = GrowingTensors(self._called)
        self._in_place = InPlaceCalls()

    def __torch_function__(
        self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if torch.compiler.is_dynamo_compiling():  # the step of a scan of the user's
            return function(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        with self._tells_of_doubt():
            if self._in_place:
                args, kwargs = self._in_place.newest(args), self._in_place.newest(kwargs)
            return self._called(function, args, kwargs)

    @contextlib.contextmanager
    def _tells_of_doubt(self) -> Iterator[None]:
        try:
            yield
        except NotRepeated:
            self._doubt = True  # the program may catch it
            self.found = max(self.found, 1)  # rows of tensors may be all that was skipped
            raise

    def _called(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        if function in _QUESTIONS:
            if self._buffers and function == _ASKS_FOR_GRADIENTS:
                self._buffers.taken(function, args, kwargs)
            if self._loop is None:
                return function(*args, **kwargs)
            with torch._C.DisableTorchFunction():
                return function(*args, **kwargs)
        if (taken := self._buffers.taken(function, args, kwargs)) is not None:
            return taken[0]
        if (grown := self._growing.taken(function, args, kwargs)) is not None:
            return grown
        if (other := out_of_place(function, args, kwargs)) is not None:
            result = self._called_out_of_place(args[0], *other)
            if self._in_place.takes_place(args[0], result):
                return result
        if self._loop is not None:
            try:
                return self._loop.next(function, args, kwargs)
            except Ended:
                self._end_loop()
        return self._traced(function, args, kwargs)

    def _called_out_of_place(
        self, tensor: FakeTensor, function: Callable, args: tuple, kwargs: dict
    ) -> Any:
        """What the function gives; None where it would not do for a call that writes it to the
        tensor."""
        if self._loop is not None:
            if self._loop.expects(function):  # as in the traced steps, where it did
                with contextlib.suppress(Ended):
                    return self._loop.next(function, args, kwargs)
            self._end_loop()
        if self._buffers.shows(tensor) or not is_intermediate(tensor):
            return None
        return self._traced(function, args, kwargs)

    def finish(self, result: Any) -> Any:
        """Behind the program: its result, in which what is left of skipped steps is known to the
        tracer, but for views that are no results, which the tapes of gradients hold."""
        result = self._in_place.result(result)
        results = pytree.tree_leaves(result)
        if self._doubt:
            raise NotRepeated("the program has caught what stopped it")
        with self._tells_of_doubt(), _pop_mode_temporarily():
            self._buffers.write_all()
            self._growing.join(results)
        if self._loop is not None:
            self._end_loop()
        self._forget()
        for loop in self._loops:
            for tensor in loop.alive():
                if loop.is_alone(tensor) or any(tensor is each for each in results):
                    loop.resolve(tensor)
        return result

    def check(self, results: Sequence[Any]) -> None:
        """results: all tensors that are left of the program."""
        with self._tells_of_doubt():
            self._buffers.check(results)
            self._in_place.check(results)

    def _end_loop(self) -> None:
        loop, self._loop = self._loop, None
        assert loop is not None
        self._loops.append(loop)
        loop.end()

    def _traced(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        mode = get_proxy_mode()
        graph = mode.tracer.graph if mode is not None else None
        form: list[Any] = []
        leaves: list[Any] = []
        try:
            with torch._C.DisableTorchFunction():
                flat((args, kwargs), form, leaves)
                looks = [looks_of(each) for each in leaves if isinstance(each, FakeTensor)]
                key = (function, tuple(form), tuple(looks), settings())
                hash(key)
            known = graph is not None
        except (Unknown, TypeError):
            known = False
        tensors = [each for each in tensors_in((args, kwargs)) if isinstance(each, FakeTensor)]
        self._in_place.check_read(tensors)
        steps = [each for each in tensors if step_of(each) is not None]
        if steps and function in _JOINING:
            result = _joined(_JOINING[function], *args, **kwargs)
            if result is not None:
                self._growing.note(function, args, kwargs, result)
                self._forget()
                return result
        for each in steps:
            step_of(each).loop.resolve(each)
        if graph is None:
            return function(*args, **kwargs)
        before = graph._root.prev
        result = function(*args, **kwargs)
        self._growing.note(function, args, kwargs, result)
        after = graph._root.prev
        if self._loops and any(map(_is_write, nodes_between(before, after))):
            raise NotRepeated("a tensor is written behind a loop")
        try:
            if not known:
                raise Unknown
            outputs, container = outputs_of(result)
        except Unknown:
            self._forget()
            return result
        passed = [next((i for i, x in enumerate(leaves) if x is y), None) for y in outputs]
        self._note(key, Call(function, form, leaves, outputs, passed, container, before, after))
        return result

    def _forget(self) -> None:
        """No step of a loop begins earlier."""
        self._kinds, self._calls, self._places, self._runs = [], [], {}, {}
        self._begin = None

    def _note(self, key: Any, call: Call) -> None:
        place, kind = len(self._calls), self._known.setdefault(key, len(self._known))
        self._calls.append(call)
        self._kinds.append(kind)
        before = self._places.setdefault(kind, deque(maxlen=_MOST_OF_KIND))
        self._runs = {p: self._runs.get(p, 0) + 1 for p in (place - each for each in before)}
        before.append(place)
        if self._begin is not None and self._runs.get(self._begin[1], 0) == 0:
            self._begin = None
        if self._begin is None:
            for period in sorted(self._runs):
                run = self._runs[period] - (self._fewest - 1) * period
                if run < 0 or run % period or period > _MOST_PERIOD:
                    continue
                if self._pays(period, self._nodes_from(place + 1 - period)):
                    first = place + 1 - self._runs[period] - period
                    self._begin = (first + self._best_start(first, period), period)
                    break
        if self._begin is not None:
            first, period = self._begin
            steps, rest = divmod(place + 1 - first, period)
            if rest == 0 and steps >= self._fewest - 1 and self._attempts < _MOST_ATTEMPTS:
                self._attempts += 1
                self._skip_from(first, period)

    def _pays(self, period: int, step: list[torch.fx.Node]) -> bool:
        """Whether a loop of such steps does, as isWorthwhile of RollLoops.cpp says."""
        if not all(map(is_elementwise, step)):
            return True
        if self._runs[period] < (self._fewest_elementwise - 1) * period:
            return False
        is_many = self._runs[period] + period > _MOST_FUSED_OPS
        return is_many or self._of_lengths or all(map(has_few_elements, step))

    def _nodes_from(self, place: int) -> list[torch.fx.Node]:
        return nodes_between(self._calls[place].before, self._calls[-1].after)

    def _best_start(self, first: int, period: int) -> int:
        """How many calls later the steps begin, so that the next one reads the least of a step, and
        each begins, where that leaves a choice, with what is no step's, as the loop's body does."""
        made = {
            id(output): (place, number)
            for place in range(first, first + 2 * period)
            for number, output in own_outputs(self._calls[place])
        }
        read: dict[tuple[int, int], int] = {}  # how far behind it a call is last read
        for place in range(first + period, first + 3 * period):
            for leaf in self._calls[place].leaves:
                source = made.get(id(leaf)) if isinstance(leaf, FakeTensor) else None
                if source is not None and first + period <= source[0] + period <= place + period:
                    at = ((source[0] - first) % period, source[1])
                    read[at] = max(read.get(at, 0), place - source[0])
        sizes = [0.0] * period
        for (at, number), distance in read.items():
            output = self._calls[first + at].outputs[number]
            # A view can be no result of a step.
            size = output.numel() * (1.5 if gives_views(node_behind(output)) else 1)
            for start in range(at + 1, min(at + distance, at + period) + 1):
                sizes[start % period] += size
        moving = [self._reads_on(first + period + at, period, made) for at in range(period)]
        ahead = [(moving[at:] + moving[:at] + [True]).index(True) for at in range(period)]
        return min(range(period), key=lambda at: (sizes[at], ahead[at]))

    def _reads_on(self, place: int, period: int, made: dict[int, Any]) -> bool:
        """Whether a call reads what no step makes, and another one in the next step."""
        leaves = zip(self._calls[place].leaves, self._calls[place + period].leaves, strict=True)
        return any(
            id(one) not in made and (one != other if isinstance(one, int) else one is not other)
            for one, other in leaves
        )

    def _skip_from(self, first: int, period: int) -> None:
        self._begin = None
        self.noticed = True
        self.found += 1  # whatever fails from here on, without loops it may not
        begins = [first - period, first] if self._is_step_like(first, period) else [first]
        for begin in begins:
            calls = self._calls[begin:]
            count = len(calls) // period
            try:
                loop = SkippedLoop(
                    self._calls[:begin], [calls[i * period :][:period] for i in range(count)]
                )
            except (NotRepeated, Unknown):
                continue
            del self._calls[begin:], self._kinds[begin:]
            self._places, self._runs = {}, {}
            loop.start()
            self.numbers = sum(not each.node.expr.free_symbols for each in self.symbols)
            if self.numbers:  # a trace at numbers alone takes a tenth of the rest of this one
                raise LoopOverSize
            self._loop = loop
            return
        self.found -= 1
        self._runs.pop(period, None)  # the next attempt is made when as much again was seen

    def _is_step_like(self, first: int, period: int) -> bool:
        """Whether the calls ahead may be a step, too, which reads other tensors than the later
        ones: states begin as tensors without gradients."""
        before, step = self._calls[max(first - period, 0) : first], self._calls[first:][:period]
        return len(before) == period and all(
            a.function == b.function
            and a.form == b.form
            and list(map(looks_of, a.outputs)) == list(map(looks_of, b.outputs))
            for a, b in zip(before, step, strict=True)
        )


def _is_write(node: torch.fx.Node) -> bool:
    """Whether the node writes what the program has computed."""
    target = node.target
    is_write = isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable
    is_write = is_write and not is_of_constant(node)
    return is_write and any(each.op != "placeholder" for each in node.all_input_nodes[:1])


def _joined(stacks: bool, tensors: Any, dim: Any = 0, **others: Any) -> FakeTensor | None:
    """What stack or cat makes of tensors, many of which are steps' results one after the other."""
    if others or type(dim) is not int or not isinstance(tensors, (tuple, list)):
        return None
    with torch._C.DisableTorchFunction():
        forms = {(each.dtype, tuple(each.shape)) for each in tensors}
        gradient = torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
    rank = len(next(iter(forms))[1]) + stacks
    if len(forms) != 1 or not -rank <= dim < rank:
        return None
    runs, first = [], 0
    while first < len(tensors):
        runs.append((first, _runs(tensors, first)))
        first += sum(count for count, _ in runs[-1][1])
    if len(runs) * 2 > len(tensors):
        return None
    blocks = []
    for first, among in runs:
        made = [step_of(each) for each in tensors[first : first + len(among)]]
        if among[0][0] > 1:
            given = [x.loop.values(x, *run) for x, run in zip(made, among, strict=True)]
            blocks.append(given[0] if len(given) == 1 else interleaved(given))
        else:
            if made[0] is not None:
                made[0].loop.resolve(tensors[first])
            blocks.append(unsqueezed(node_behind(tensors[first])))
    node = joined(blocks, dim, stacks)
    result = Like(node.meta["val"], gradient).another()
    track_as_own(result, node)
    return result


def _runs(tensors: Sequence[FakeTensor], first: int) -> list[tuple[int, int]]:
    """How many from there on are results of steps, and how far these steps are apart; of several
    for each step, of each of these."""
    if as_made(tensors[first]) is not None:
        for width in range(1, _MOST_OF_STEP + 1):
            runs = [
                _run(tensors[at::width], 0)
                for at in range(first, first + width)[: len(tensors) - first]
            ]
            count = min(each[0] for each in runs)
            if count > 1 and len(runs) == width:
                return [(count, delta) for _, delta in runs]
    return [(1, 1)]


def _run(tensors: Sequence[FakeTensor], first: int) -> tuple[int, int]:
    """How many from there on are results of steps, and how far these steps are apart."""
    made, count, delta = as_made(tensors[first]), 1, 1
    if made is None:
        return 1, 1
    for tensor in tensors[first + 1 :]:
        other = as_made(tensor)
        if other is None or other.place != made.place:
            break
        if count == 1 and abs(other.step - made.step) == 1:
            delta = other.step - made.step
        if other.step != made.step + delta * count:
            break
        count += 1
    return count, delta
