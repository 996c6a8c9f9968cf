# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of Python that a program takes as inputs, and what is computed of them.

A call's numbers are computed with by Python itself, ahead of the program, in the steps that were
taken while the program was made; the program takes the ones that its operations read. Whoever looks
at a number otherwise (a comparison, a conversion, its text) gets its value, and has made a
condition of it: the program stands for numbers of which the same is true.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

# Buffers of what is traced, an element of which each number is that an operation reads.
FLOATS, INTS = "weft_floats", "weft_ints"
MOST_READ = 1024
# In the meta of a node that reads one: the `Number`.
NUMBER = "weft.number"
# The program takes float64, of which each of these is one.
_LARGEST_INT = 2**53
Plain = bool | int | float

_INFIX: dict[Callable[..., Any], str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}


# What has a number, as an attribute or item, and under which name, key or index.
Owner = dict[Any, Any] | list[Any]
Name = str | int
Attributes = tuple[tuple[Owner, Name], ...]

# What their results are, operands' types tell.
_SAME_KIND = frozenset(_INFIX) - {operator.pow}


@dataclass(frozen=True)
class Step:
    """One computation. operands: numbers of earlier values for each that is one, others in 1-tuples
    of themselves. kind: what the result has to be, where that may depend on operands' values."""

    function: Callable[..., Any]
    operands: tuple[int | tuple[Any], ...]
    kind: type | None = None


@dataclass(frozen=True)
class Read:
    """A value that the program takes, and what no greater one can be."""

    number: int
    most: float


@dataclass(frozen=True)
class WantedNumbers:
    """What a program is to take. kind: of the calls. arguments: leaves of these."""

    kind: Hashable = None
    arguments: tuple[int, ...] = ()
    attributes: Attributes = ()

    @property
    def leaves(self) -> tuple[int, ...]:
        """The numbers of the leaves, as `NumberInputs` has them."""
        return (*self.arguments, *(-1 - n for n in range(len(self.attributes))))

    def key(self, leaf: int) -> Hashable:
        """The key by which other calls know the number."""
        if leaf >= 0:
            return self.kind, leaf
        owner, name = self.attributes[-1 - leaf]
        return id(owner), name

    def value(self, leaf: int, arguments: Sequence[Any]) -> Any:
        """arguments: the leaves of the call's."""
        if leaf >= 0:
            return arguments[leaf]
        owner, name = self.attributes[-1 - leaf]
        return owner[name]

    def of_attributes(self) -> WantedNumbers:
        """Those that are attributes."""
        return replace(self, arguments=())

    def without(self, leaves: Collection[int]) -> WantedNumbers:
        """leaves: arguments."""
        return replace(self, arguments=tuple(n for n in self.arguments if n not in leaves))


NO_NUMBERS = WantedNumbers()


@dataclass(frozen=True)
class NumberInputs:
    """How a program is given the numbers of a call.

    leaves: of the call's arguments, by number; -1, -2 and so on are attributes. kinds: their types.
    steps: each makes one more value. reads: what the program takes. conditions: numbers of values
    and what they have to be. fixed: those among the leaves that have to be what they were. names:
    of the leaves.
    """

    leaves: tuple[int, ...]
    kinds: tuple[type, ...]
    steps: tuple[Step, ...]
    reads: tuple[Read, ...]
    conditions: tuple[tuple[int, Plain], ...]
    fixed: frozenset[int]
    names: tuple[str, ...]

    @property
    def arguments(self) -> list[int]:
        """The leaves that are arguments."""
        return [leaf for leaf in self.leaves if leaf >= 0]

    @property
    def matters(self) -> bool:
        """Whether it matters what the numbers are."""
        return bool(self.arguments or self.reads or self.conditions)

    def function(self, attributes: Attributes) -> Callable[..., tuple[float, ...] | None]:
        """Of the leaves that are arguments, to the values that the program takes; None where it
        stands for no such numbers. It may also raise whatever Python does on the way.

        attributes: those among the leaves.
        """
        names: dict[str, Any] = {"same": is_same}
        count = len(self.leaves)
        given = [f"v{n}" for n, leaf in enumerate(self.leaves) if leaf >= 0]
        lines = [f"def numbers({', '.join(given)}):"]
        for number, leaf in enumerate(self.leaves):
            if leaf < 0:
                owner, name = attributes[-1 - leaf]
                lines.append(f"v{number} = {_constant(owner, names)}[{name!r}]")
        for number, kind in enumerate(self.kinds):
            lines.append(f"if type(v{number}) is not {kind.__name__}: return None")
        for number, step in enumerate(self.steps, count):
            lines.append(f"v{number} = {_written(step, names)}")
            if step.kind is not None:
                lines.append(f"if type(v{number}) is not {step.kind.__name__}: return None")
        for number, value in self.conditions:
            if type(value) is bool:
                lines.append(f"if v{number} is not {value}: return None")
            else:
                lines.append(f"if not same(v{number}, {_constant(value, names)}): return None")
        for read in self.reads:
            most = _constant(read.most, names)
            lines.append(f"if not -{most} <= v{read.number} <= {most}: return None")
        taken = "".join(f"v{read.number}, " for read in self.reads)
        lines.append(f"return ({taken or '0.0, '})")
        exec("\n    ".join(lines), names)
        made: Callable[..., tuple[float, ...] | None] = names["numbers"]
        return made

    def take(
        self, leaves: Sequence[Any], function: Callable[..., tuple[float, ...] | None]
    ) -> tuple[float, ...] | None:
        """What the program takes of a call with these leaves. function: as `function` makes it."""
        try:
            taken = function(*(leaves[n] for n in self.arguments))
        except (ArithmeticError, TypeError, ValueError):
            return None
        return taken

    def told(self) -> str:
        """The conditions that leave one value of a leaf."""
        texts = list(self.names)
        for step in self.steps:
            given = [
                texts[each] if isinstance(each, int) else repr(each[0]) for each in step.operands
            ]
            sign = _INFIX.get(step.function)
            name = getattr(step.function, "__name__", str(step.function))
            texts.append(
                f"({given[0]} {sign} {given[1]})" if sign else f"{name}({', '.join(given)})"
            )
        conditions = (
            f"{texts[number]} is {value}"
            if type(value) is bool
            else f"{texts[number]} == {value!r}"
            for number, value in self.conditions
        )
        return f"the program looks at a number: {'; '.join(conditions)}"


def _written(step: Step, names: dict[str, Any]) -> str:
    given = [
        f"v{each}" if isinstance(each, int) else _constant(each[0], names) for each in step.operands
    ]
    if (sign := _INFIX.get(step.function)) is not None:
        return f"{given[0]} {sign} {given[1]}"
    return f"{_constant(step.function, names)}({', '.join(given)})"


def _constant(value: Any, names: dict[str, Any]) -> str:
    name = f"c{len(names)}"
    names[name] = value
    return name


def can_be_taken(number: int | float) -> bool:
    """Whether a program may take it: what is not finite has programs of its own."""
    return math.isfinite(number) if type(number) is float else abs(number) <= _LARGEST_INT


def is_same(a: Any, b: Any) -> bool:
    """Whether a guard of a plain value would hold: 1 is not 1.0, 0.0 not -0.0, and NaN is NaN."""
    if type(a) is not type(b):
        return False
    return a.hex() == b.hex() if type(a) is float else a == b


@dataclass
class Numbers:
    """Those of the call for which a program is made.

    leaves: their numbers among the arguments' leaves. values: theirs, then one for each step.
    read: what operations of the trace read, in order; the program reads some of them.
    """

    leaves: tuple[int, ...]
    values: list[Any]
    steps: list[Step] = field(default_factory=list)
    reads: dict[int, float] = field(default_factory=dict)
    conditions: dict[int, Plain] = field(default_factory=dict)
    read: list[Number] = field(default_factory=list)

    def apply(self, function: Callable[..., Any], *operands: Any) -> Any:
        """What the function makes of numbers: one of them, or what is no number, but a condition.

        Raises: what the function does.
        """
        given = [x.value if isinstance(x, Number) else x for x in operands]
        try:
            value = function(*given)
        except Exception:  # which the user's code may handle
            for each in operands:
                if isinstance(each, Number):
                    each.fixed()
            raise
        if value is NotImplemented:
            return value
        places = tuple(x.place if isinstance(x, Number) else (x,) for x in operands)
        kind = None if function in _SAME_KIND else type(value)
        self.steps.append(Step(function, places, kind))
        self.values.append(value)
        made = Number(self, len(self.values) - 1)
        return made if type(value) in (int, float) else made.fixed()

    def require(self, place: int) -> Any:
        """The value at a place, which it is to have in each call."""
        value = self.values[place]
        if type(value) in (bool, int, float):
            self.conditions[place] = value
        else:  # all that it is made of, then
            for each in self.steps[place - len(self.leaves)].operands:
                if isinstance(each, int):
                    self.require(each)
        return value

    def inputs(self, names: Sequence[str]) -> NumberInputs:
        """names: of the leaves."""
        count = len(self.leaves)
        kinds = tuple(map(type, self.values[:count]))
        needed = {*self.reads, *self.conditions}
        for place in range(len(self.values) - 1, count - 1, -1):
            if place in needed:
                operands = self.steps[place - count].operands
                needed.update(each for each in operands if isinstance(each, int))
        places = {number: number for number in range(count)}
        steps = []
        for place, step in enumerate(self.steps, count):
            if place in needed:
                places[place] = count + len(steps)
                given = (places[x] if isinstance(x, int) else x for x in step.operands)
                steps.append(Step(step.function, tuple(given), step.kind))
        reads = tuple(Read(places[place], most) for place, most in self.reads.items())
        conditions = tuple((places[place], value) for place, value in self.conditions.items())
        fixed = frozenset(self.leaves[place] for place in self.conditions if place < count)
        return NumberInputs(
            self.leaves, kinds, tuple(steps), reads, conditions, fixed, tuple(names)
        )

    def input_of(self, number: Number, dtype: torch.dtype) -> int:
        """Which one of the values that the program takes the number is. It is none that elements
        of `dtype` cannot hold, whatever PyTorch does then, and finite."""
        if dtype.is_floating_point:
            most = torch.finfo(dtype).max
        else:
            most = min(torch.iinfo(dtype).max, _LARGEST_INT)
        if type(number.value) is int:
            most = min(most, _LARGEST_INT)
        self.reads[number.place] = min(most, self.reads.get(number.place, math.inf))
        return [*self.reads].index(number.place)


class Arithmetic:
    """What Python does with a number, as a step of `Numbers`."""

    number: Number

    def _apply(self, function: Callable[..., Any], *operands: Any) -> Any:
        given = [x.number if isinstance(x, Arithmetic) else x for x in operands]
        if not all(isinstance(x, Number) or type(x) in (bool, int, float) for x in given):
            return NotImplemented
        made = self.number.numbers.apply(function, *given)
        return self._like(made) if isinstance(made, Number) else made

    def _like(self, number: Number) -> Any:
        raise NotImplementedError

    def __bool__(self) -> bool:
        answer: bool = self.number.numbers.apply(bool, self.number)
        return answer

    def __float__(self) -> float:
        return float(self.number.fixed())

    def __int__(self) -> int:
        answer: int = self._plain(self.number.numbers.apply(int, self.number))
        return answer

    def __index__(self) -> int:
        return operator.index(self.number.fixed())

    def __complex__(self) -> complex:
        return complex(self.number.fixed())

    def __hash__(self) -> int:
        return hash(self.number.fixed())

    def __str__(self) -> str:
        return str(self.number.fixed())

    def __repr__(self) -> str:
        return repr(self.number.fixed())

    def __format__(self, spec: str) -> str:
        return format(self.number.fixed(), spec)

    def __reduce__(self) -> Any:
        value = self.number.fixed()
        return type(value), (value,)

    def __round__(self, digits: int | None = None) -> Any:
        return self._apply(round, self) if digits is None else self._apply(round, self, digits)

    @staticmethod
    def _plain(number: Any) -> Any:
        return number.fixed() if isinstance(number, Number) else number


def _unary(function: Callable[..., Any]) -> Any:
    return lambda self: self._apply(function, self)


def _binary(function: Callable[..., Any]) -> Any:
    return lambda self, other: self._apply(function, self, other)


def _reflected(function: Callable[..., Any]) -> Any:
    return lambda self, other: self._apply(function, other, self)


for _name in ("neg", "pos", "abs", "invert"):
    setattr(Arithmetic, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("trunc", "floor", "ceil"):
    setattr(Arithmetic, f"__{_name}__", _unary(getattr(math, _name)))
for _name in (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
    *("and", "or", "xor", "lshift", "rshift"),
):
    _function = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(Arithmetic, f"__{_name}__", _binary(_function))
    setattr(Arithmetic, f"__r{_name}__", _reflected(_function))
Arithmetic.__divmod__ = lambda self, other: (self // other, self % other)
Arithmetic.__rdivmod__ = lambda self, other: (other // self, other % self)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Arithmetic, f"__{_name}__", _binary(getattr(operator, _name)))


class Number(Arithmetic):
    """One that rules see in the place of a plain number. place: among the values of `numbers`."""

    __slots__ = ("numbers", "place")

    def __init__(self, numbers: Numbers, place: int) -> None:
        self.numbers = numbers
        self.place = place

    @property
    def number(self) -> Number:  # type: ignore[override]
        return self

    @property
    def value(self) -> Any:
        """In the call for which the program is made."""
        return self.numbers.values[self.place]

    def fixed(self) -> Any:
        """The value, which it then has in all calls."""
        return self.numbers.require(self.place)

    def _like(self, number: Number) -> Number:
        return number

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return type(self.value)


def plain(values: Sequence[Any] | dict[str, Any]) -> Any:
    """The same arguments with the values of numbers, which are then fixed."""
    return torch.utils._pytree.tree_map(
        lambda leaf: leaf.fixed() if type(leaf) is Number else leaf, values
    )
