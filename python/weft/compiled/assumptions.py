# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a traced program assumes of a call and of the state around it, as text for the user."""

from __future__ import annotations

import enum
import inspect
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from weft.capture.argument_classes import parts_of
from weft.capture.guard_texts import OF_TORCH, Entry, Sizes, difference, metadata, texts
from weft.capture.signature import PLAIN, Same
from weft.compiled.specialize import Specialized

if TYPE_CHECKING:
    from weft.capture.snapshots import Snapshot
    from weft.capture.symbolic_trace import SizeSymbols
    from weft.compiled.requests import Environment, Request

# The least and the largest size, by leaf and dimension.
Bounds = Mapping[int, Mapping[int, tuple[int, int]]]


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of one program.

    arguments: the key of the call, as in guard_texts.py. bounds: the sizes that the program
    accepts. free: the leaves that are numbers and inputs of the program. environment: the one that
    the program was made in, while its programs are kept. gradients: whether its calls record them.
    made_at: in seconds of time.perf_counter.
    """

    target: Any
    arguments: tuple
    bounds: Bounds
    free: frozenset[int]
    environment: Callable[[], Environment | None]
    gradients: bool
    made_at: float = field(default_factory=time.perf_counter)

    @staticmethod
    def of(
        request: Request, target: Any, program: Specialized, symbols: SizeSymbols | None = None
    ) -> Assumptions:
        """The assumptions of a program. symbols: those of a program for a range of sizes."""
        numbers = program.numbers
        free = frozenset[int]() if numbers is None else frozenset(numbers.inputs.arguments)
        bounds = {} if symbols is None else _bounds(symbols)
        arguments = _key(target, request.args, request.kwargs, bounds, free)
        environment = weakref.ref(request.environment)
        return Assumptions(target, arguments, bounds, free, environment, request.gradients)

    def texts(self) -> list[str]:
        """The assumptions as text, each once, beginning with those about arguments."""
        environment = self.environment()
        state = () if environment is None else environment.state.key[1:]
        recorded = f"gradients {'are' if self.gradients else 'are not'} recorded"
        all_texts = (
            *texts(self.arguments),
            *texts(state),
            recorded,
            f"{OF_TORCH}settings as they were",
        )
        return list(dict.fromkeys(all_texts))

    def why_miss(self, args: tuple, kwargs: dict[str, Any], state: Snapshot) -> str | None:
        """The first assumption that the call does not fulfil in this state, or None."""
        if (environment := self.environment()) is None:
            return "it has been dropped for others"
        if not environment.settings.check():
            return f"a setting of torch has changed: {environment.settings.reason().strip()}"
        found = _key(self.target, args, kwargs, self.bounds, self.free)
        text = difference(self.arguments, found)
        return text or state.reason or difference(environment.state.key, state.key)


def _bounds(symbols: SizeSymbols) -> Bounds:
    lows = [low for low, _ in symbols.ranges]
    highs = [high for _, high in symbols.ranges]
    return {
        leaf: {
            number: (dim.least(lows, highs), dim.least(highs, lows))
            for number, dim in enumerate(dims)
            if not isinstance(dim, int)
        }
        for leaf, dims in symbols.dims.items()
    }


def _key(
    target: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
    bounds: Bounds,
    free: frozenset[int],
) -> tuple:
    names = _names(target, len(args))
    walk = _Walk(bounds, free)
    entries = [Entry(name, walk.key(value, name)) for name, value in zip(names, args)]
    entries += [Entry(name, walk.key(value, name)) for name, value in kwargs.items()]
    count = Entry("the number of arguments", (int, len(args)))
    return (count, *entries)


class _Walk:
    """A walk over a call's leaves, in the order of the signature."""

    def __init__(self, bounds: Bounds, free: frozenset[int]) -> None:
        self.bounds, self.free = bounds, free
        self.leaves = 0
        self.first: dict[int, str] = {}  # names of tensors, by address

    def key(self, value: Any, name: str) -> Any:
        kind = type(value)
        if isinstance(value, torch.Tensor):
            return self.tensor(value, name)
        if kind in (tuple, list):
            parts = {f"[{i}]": each for i, each in enumerate(value)}
        elif kind is dict:
            parts = {f"[{key!r}]": each for key, each in value.items()}
        elif kind in PLAIN or isinstance(value, enum.Enum):
            return self.leaf(value)
        elif (found := parts_of(value)) is not None:
            parts = found
        else:
            self.leaves += 1
            return Entry(".__class__", Same(kind))
        inner = tuple(Entry(at, self.key(each, name + at)) for at, each in parts.items())
        return (Entry(".__class__", Same(kind)), (kind, inner))

    def leaf(self, value: Any) -> Any:
        number, kind = self.leaves, type(value)
        self.leaves += 1
        if number in self.free:
            return Entry(".__class__", Same(kind))
        if kind in PLAIN:
            return (kind, value.hex() if kind is float else value)
        return Same(value)

    def tensor(self, value: torch.Tensor, name: str) -> Any:
        bounds = self.bounds.get(self.leaves, {})
        self.leaves += 1
        if (first := self.first.setdefault(id(value), name)) != name:
            return Entry(" is", first)
        facts = metadata(value)
        if bounds:
            shape = tuple(
                Sizes(*bounds[i]) if i in bounds and _is_within(size, bounds[i]) else size
                for i, size in enumerate(value.shape)
            )
            facts = tuple(
                Entry(each.label, shape) if each.label == ".shape" else each
                for each in facts
                if each.label != ".stride()"
            )
        return (Entry(".__class__", Same(type(value))), *facts)


def _is_within(size: int, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= size <= bounds[1]


def _names(target: Callable[..., Any], count: int) -> list[str]:
    """The names of the first `count` positional arguments."""
    called = target.forward if isinstance(target, torch.nn.Module) else target
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # a built-in function has no signature
        return [f"args[{i}]" for i in range(count)]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in kinds][:count]
    rest = next((each.name for each in parameters if each.kind == each.VAR_POSITIONAL), "args")
    return [*names, *(f"{rest}[{i}]" for i in range(count - len(names)))]
