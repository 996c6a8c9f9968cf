# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers among the arguments that a trace takes for inputs.

The user's code gets objects in their place that compute as Python does, and keep the steps
(frontend/numbers.py). To torch they are symbolic: an operation that takes one reads an element of a
buffer, of which no value is known, so that whatever asks for one ends the trace, or makes a
condition of it where it asks the object itself.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from operator import is_ as _is
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.fx.experimental.sym_node import SymNode

from weft.capture.free_numbers import held
from weft.capture.signature import Declined
from weft.capture.traced_constants import node_of
from weft.frontend.lowered import Unsupported
from weft.frontend.numbers import (
    FLOATS,
    INTS,
    MOST_READ,
    Arithmetic,
    Number,
    Numbers,
    WantedNumbers,
)

# Called with an object that is no float they would take its value.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for name, function in vars(math).items()
    if callable(function) and name not in ("trunc", "floor", "ceil", "fsum", "prod")
}
_COMPARISONS = {
    sympy.Eq: operator.eq,
    sympy.Ne: operator.ne,
    sympy.Lt: operator.lt,
    sympy.Le: operator.le,
    sympy.Gt: operator.gt,
    sympy.Ge: operator.ge,
}


class _Traced(Arithmetic):
    """A number of the trace's. node: what torch knows it by, made ahead of the operations, since
    nothing is traced within them."""

    _root: NumbersOfTrace
    number: Number
    node: SymNode

    @classmethod
    def of(cls, root: NumbersOfTrace, number: Number) -> _Traced:
        made = object.__new__(TracedFloat if _type(number.value) is float else TracedInt)
        attributes = object.__getattribute__(made, "__dict__")
        attributes.update(_root=root, number=number, node=root.node(number))
        return made

    def __getattribute__(self, name: str) -> Any:
        """Those that numbers of Python have, and what torch looks for."""
        if name in _FOR_TORCH or name.startswith("__sym_"):
            return object.__getattribute__(self, name)
        number = object.__getattribute__(self, "number")
        if name in _COMPUTED and hasattr(number.value, name):
            return object.__getattribute__(self, name)
        return getattr(number.fixed() if hasattr(number.value, name) else number.value, name)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return _type(self.number.value)

    def _like(self, number: Number) -> Any:
        return number.fixed() if _is_within_operation() else _Traced.of(self._root, number)

    @property
    def real(self) -> Any:
        return self

    @property
    def imag(self) -> Any:
        return _type(self.number.value)(0)

    def conjugate(self) -> Any:
        return self

    # What torch calls to compute with it.

    def __sym_float__(self) -> Any:
        if _is_within_operation():
            return torch.SymFloat(self.node.sym_float())
        return self._apply(float, self)

    def __sym_int__(self) -> Any:
        return self._apply(int, self)

    def __sym_max__(self, other: Any) -> Any:
        return self._apply(max, self, other)

    def __sym_min__(self, other: Any) -> Any:
        return self._apply(min, self, other)

    def is_integer(self) -> bool:
        answer: bool = self.number.numbers.apply(float.is_integer, self.number)
        return answer


_FOR_TORCH = frozenset(("node", "number", "_root", "_apply", "_like", "_plain", "_sympy_"))
_COMPUTED = (vars(Arithmetic).keys() | vars(_Traced).keys()) - {"__dict__", "__doc__", "__module__"}


class TracedFloat(_Traced, torch.SymFloat):
    """A float."""

    __hash__ = _Traced.__hash__


class TracedInt(_Traced, torch.SymInt):
    """An int."""

    __hash__ = _Traced.__hash__


class NumbersOfTrace:
    """Those of one trace.

    numbers: what is computed of them. attributes: attributes and items that are numbers which the
    program takes, by what has each and its name. vectors: of ints, that were made of such and of
    others.
    """

    def __init__(self, wanted: WantedNumbers, arguments: Sequence[Any]) -> None:
        """arguments: the leaves of the call's."""
        self.attributes = wanted.attributes
        self.free = {(id(owner), name) for owner, name in wanted.attributes}
        self._placed: list[_Traced] = []
        values = [wanted.value(leaf, arguments) for leaf in wanted.leaves]
        self.numbers = Numbers(wanted.leaves, values)
        self.vectors: dict[torch.fx.Node, tuple[Number | int, ...]] = {}
        self._nodes: dict[int, SymNode] = {}
        self._symbols: dict[sympy.Symbol, Number] = {}
        self._buffers: dict[str, Callable[[], torch.Tensor]] = {}

    def enter(self, root: torch.nn.Module) -> None:
        """Gives the traced root the buffers that are read."""
        for name, dtype in ((FLOATS, torch.float64), (INTS, torch.int64)):
            root.register_buffer(name, torch.zeros(MOST_READ, dtype=dtype))
            self._buffers[name] = lambda name=name: root._buffers[name]

    def arguments(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments, with objects in the place of numbers."""
        leaves, structure = pytree.tree_flatten((args, kwargs))
        for place, leaf in enumerate(self.numbers.leaves):
            if leaf < 0:
                continue
            leaves[leaf] = _Traced.of(self, Number(self.numbers, place))
        made: tuple[tuple, dict[str, Any]] = pytree.tree_unflatten(leaves, structure)
        return made

    def place(self) -> None:
        """Puts objects in the place of attributes."""
        first = len(self.numbers.leaves) - len(self.attributes)
        for place, (owner, name) in enumerate(self.attributes, first):
            self._placed.append(_Traced.of(self, Number(self.numbers, place)))
            owner[name] = self._placed[-1]

    def are_in_place(self) -> bool:
        found = (held(owner, name) for owner, name in self.attributes)
        return all(map(_is, found, self._placed))

    def put_back(self) -> None:
        for (owner, name), placed in zip(self.attributes, self._placed):
            if held(owner, name) is placed:
                owner[name] = placed.number.value

    def node(self, number: Number) -> SymNode:
        if (found := self._nodes.get(number.place)) is not None:
            return found
        count = len(self.numbers.read)
        if count == MOST_READ:
            raise Declined(f"operations read more than {MOST_READ} numbers")
        self.numbers.read.append(number)
        name = FLOATS if _type(number.value) is float else INTS
        node: SymNode = self._buffers[name]()[count].item().node
        node.weft_number = number
        self._nodes[number.place] = node
        self._symbols[node.expr] = number
        return node

    def _answer(self, node: SymNode) -> bool | None:
        """The answer to a comparison that an operation of torch's makes; None for other
        questions."""
        compare = _COMPARISONS.get(_type(node.expr))
        if compare is None:
            return None
        sides = [self._symbols.get(side, side) for side in node.expr.args]
        plain = [_plain(side) for side in sides]
        if any(side is None for side in plain):
            return None
        answer: bool = self.numbers.apply(compare, *plain)
        return answer

    def _asked(self, guard: Callable[..., bool]) -> Callable[..., bool]:
        def asked(node: SymNode, file: str, line: int) -> bool:
            answer = self._answer(node)
            return guard(node, file, line) if answer is None else answer

        return asked

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Within it what asks torch's node for a value makes a condition of it, and functions that
        take plain numbers take these."""
        with contextlib.ExitStack() as undo:
            for name in ("guard_float", "guard_int"):
                _replace(undo, SymNode, name, _guarding(getattr(SymNode, name)))
            _replace(undo, SymNode, "guard_bool", self._asked(SymNode.guard_bool))
            for name, function in _FUNCTIONS.items():
                _replace(undo, math, name, _computing(getattr(math, name), function))
            for name in ("tensor", "as_tensor"):
                _replace(undo, torch, name, _making(getattr(torch, name)))
            _replace(undo, builtins, "type", _TypeOfNumbers)
            yield


class UnreadNumbers(NumbersOfTrace):
    """Attributes whose values are no part of the state, in a trace whose program takes none: it
    stands for calls only if nothing depends on them."""

    def enter(self, root: torch.nn.Module) -> None:
        pass

    def node(self, number: Number) -> Any:
        return _UnreadNode(number)

    def check(self) -> None:
        """Raises: Unsupported, where something does."""
        if self.numbers.conditions:
            raise Unsupported("an attribute that is a number varies, and is read")


class _UnreadNode:
    """In the place of what torch knows a number by."""

    def __init__(self, number: Number) -> None:
        self._number = number

    def __getattr__(self, name: str) -> Any:
        self._number.fixed()
        raise Declined("an operation reads an attribute that is a number")


def _is_within_operation() -> bool:
    """Whether the comparison is within an operation of torch's, which computes its result's form
    and of which nothing is traced."""
    return get_proxy_mode() is None


# Here and in what is called from here, what it is.
_type = type


class _MetaOfTypes(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """The class of one object, which for a traced number is that of the number."""
        if len(args) == 1 and not kwargs:
            return args[0].__class__ if _is_traced(args[0]) else _type(args[0])
        return _type(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _type)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, _type)


class _TypeOfNumbers(type, metaclass=_MetaOfTypes):
    """Stands in the place of `type` while the user's code runs."""


def _is_traced(value: Any) -> bool:
    return issubclass(_type(value), _Traced)


def _plain(side: Any) -> Any:
    """The number that is compared: a number of the trace's, or of Python's; None for anything
    else."""
    if _type(side) is Number:
        return side
    if isinstance(side, sympy.Integer):
        return int(side)
    return float(side) if isinstance(side, sympy.Float) else None


def fixed(result: Any) -> Any:
    """A result with plain numbers, which are then the same in all calls."""
    leaves = pytree.tree_leaves(result)
    if not any(_is_traced(leaf) for leaf in leaves):
        return result
    return pytree.tree_map(lambda leaf: leaf.number.fixed() if _is_traced(leaf) else leaf, result)


def _replace(undo: contextlib.ExitStack, owner: Any, name: str, made: Any) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, made)


def _guarding(guard: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(node: SymNode, file: str, line: int) -> Any:
        number: Number | None = getattr(node, "weft_number", None)
        return guard(node, file, line) if number is None else number.fixed()

    return guarded


def _computing(function: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """own: Python's, where torch has put another one in its place."""

    def computed(*args: Any, **kwargs: Any) -> Any:
        traced = next((each for each in args if _is_traced(each)), None)
        if traced is None or kwargs:
            return function(*args, **kwargs)
        made = traced._apply(own, *args)
        return function(*args) if made is NotImplemented else made

    return computed


def _making(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """torch.tensor, which looks at the numbers that it is given."""

    def made(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        if _is_traced(data):
            scalars = [data]
        elif _type(data) in (list, tuple):
            scalars = [*data]
        else:
            return function(data, *args, **kwargs)
        is_plain = all(_type(x) in (int, float) or _is_traced(x) for x in scalars)
        is_traced = any(_is_traced(x) for x in scalars)
        if not (is_plain and is_traced) or args or kwargs.keys() - {"dtype", "device"}:
            return function(data, *args, **kwargs)
        dtype = kwargs.get("dtype")
        if dtype is None:
            is_float = any(isinstance(each, float) for each in scalars)
            dtype = torch.get_default_dtype() if is_float else torch.int64
        device = kwargs.get("device")
        tensors = [torch.scalar_tensor(x, dtype=dtype, device=device) for x in scalars]
        if _is_traced(data):
            return tensors[0]
        vector = torch.stack(tensors)
        root = next(each._root for each in scalars if _is_traced(each))
        node = node_of(vector)
        if node is not None and not dtype.is_floating_point:
            root.vectors[node] = tuple(x.number if _is_traced(x) else x for x in scalars)
        return vector

    return made
