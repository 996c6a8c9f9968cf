# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Snapshots of what a call writes: memory, an entry, or the contents of a container."""

from __future__ import annotations

import copy
import random
import types
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator
from typing import Any, Self

import numpy
import torch

from weft import _capture
from weft.capture.thread_state import autocast, set_autocast
from weft.observe.contexts import Depth
from weft.observe.inference import inference_modes, push_inference
from weft.observe.sameness import difference
from weft.observe.telling import push_filters, warning_filters


def snapshot(written: Any, key: Hashable = None) -> Any:
    """A snapshot of something that is written.

    written: a tensor, an array, a whole container, an iterator, a generator of random numbers, a
    function of torch that sets autocast, or an operation that sets the inference mode or filters of
    warnings. With a key it is a dict, a list, an object or class with that attribute, or a cell;
    for a tensor the key selects its data, its gradient or whether it requires one, and for an entry
    of `__slots__` the key is the descriptor.

    Raises: TypeError, for anything else.
    """
    # Tensors made in inference mode could not be written outside of it.
    if torch.is_inference_mode_enabled():
        with torch.inference_mode(False):
            return snapshot(written, key)
    if isinstance(written, torch.Tensor):
        kinds = {None: Memory, "data": Data, "grad": Gradient, "requires_grad": RequiresGradient}
        return kinds[key](written)
    if isinstance(written, numpy.ndarray):
        return Elements(written)
    if written is push_inference:
        return Depth(inference_modes)
    if written is push_filters:
        return Depth(warning_filters)
    if isinstance(written, types.BuiltinFunctionType):
        return Autocast()
    if isinstance(written, types.CellType):
        return Cell(written)
    if isinstance(written, type):
        return ClassAttribute(written, key)
    if isinstance(written, (random.Random, numpy.random.RandomState, torch.Generator)):
        return Generator(written)
    if isinstance(written, numpy.random.Generator):
        return BitGenerator(written)
    if isinstance(key, types.MemberDescriptorType):
        return Slot(written, key)
    if type(written) is list and key is not None:
        return Item(written, key)
    if _capture.has_position(written):
        return Position(written)
    if key is not None:
        is_dict = type(written) in (dict, Counter, defaultdict)
        return Entry(written if is_dict else vars(written), key)
    return Contents(written)


class Memory:
    """Memory of a tensor: its whole storage is copied. Putting it back leaves version counters
    alone."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        memory = torch.empty(0, dtype=torch.uint8)
        with torch.no_grad():
            self._memory = memory.set_(tensor.untyped_storage())
            self._bytes = self._memory.clone()

    def restore(self) -> None:
        self._memory.copy_(self._bytes)

    def again(self) -> Memory:
        """A snapshot of the same memory as it is now."""
        now = copy.copy(self)
        now._bytes = self._memory.clone()
        return now

    def agrees(self, other: Memory, tolerance: float | None = None) -> bool:
        if tolerance is None:
            return torch.equal(self._bytes, other._bytes)
        size = self._bytes.numel() - self._bytes.numel() % self.tensor.element_size()
        values = [each._bytes[:size].view(self.tensor.dtype) for each in (self, other)]
        return difference(*values, tolerance=tolerance) is None


class Elements:
    """The elements of an array."""

    def __init__(self, array: numpy.ndarray) -> None:
        self._array, self._elements = array, array.copy()

    def restore(self) -> None:
        self._array[...] = self._elements

    def again(self) -> Elements:
        return Elements(self._array)

    def agrees(self, other: Elements, tolerance: float | None = None) -> bool:
        return self._elements.tobytes() == other._elements.tobytes()


class Data:
    """Which memory a tensor has."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor, self._data = tensor, tensor.data

    def restore(self) -> None:
        self._tensor.data = self._data

    def again(self) -> Data:
        return Data(self._tensor)

    def agrees(self, other: Data, tolerance: float | None = None) -> bool:
        return difference(self._data, other._data, tolerance=tolerance) is None


class Gradient:
    """The gradient of a tensor, or that it has none."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor, self._gradient = tensor, tensor.grad
        self._memory = None if tensor.grad is None else Memory(tensor.grad)

    def restore(self) -> None:
        if self._memory is not None:
            self._memory.restore()
        self._tensor.grad = self._gradient

    def again(self) -> Gradient:
        return Gradient(self._tensor)

    def agrees(self, other: Gradient, tolerance: float | None = None) -> bool:
        if self._memory is None or other._memory is None:
            return self._memory is other._memory
        found = difference(self._gradient, other._gradient, tolerance=tolerance)
        return found is None and self._memory.agrees(other._memory, tolerance)


class RequiresGradient:
    """Whether a leaf requires a gradient."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor, self._flag = tensor, tensor.requires_grad

    def restore(self) -> None:
        self._tensor.requires_grad = self._flag

    def again(self) -> RequiresGradient:
        return RequiresGradient(self._tensor)

    def agrees(self, other: RequiresGradient, tolerance: float | None = None) -> bool:
        return self._flag == other._flag


_ABSENT = object()


class _Held:
    """The content of one place: `_value`, or _ABSENT."""

    _value: Any

    def agrees(self, other: Self, tolerance: float | None = None) -> bool:
        return difference(self._value, other._value, tolerance=tolerance) is None


class Entry(_Held):
    def __init__(self, owner: dict, key: Hashable) -> None:
        self._owner, self._key = owner, key
        self._value = owner.get(key, _ABSENT)
        self._keys = list(owner) if key in owner else []

    def restore(self) -> None:
        if self._value is _ABSENT:
            self._owner.pop(self._key, None)
        elif self._key in self._owner:
            self._owner[self._key] = self._value
        else:  # puts the entry back at its place in the order
            left = dict(self._owner)
            left[self._key] = self._value
            _refill(self._owner, {each: left[each] for each in self._keys if each in left} | left)

    def again(self) -> Entry:
        return Entry(self._owner, self._key)


class Item(_Held):
    def __init__(self, owner: list, index: int) -> None:
        self._owner, self._index = owner, index
        self._value = owner[index] if index < len(owner) else _ABSENT

    def restore(self) -> None:
        if self._value is not _ABSENT and self._index < len(self._owner):
            self._owner[self._index] = self._value

    def again(self) -> Item:
        return Item(self._owner, self._index)


class ClassAttribute(_Held):
    """An attribute in a class's own dict, set without the methods of its metaclass."""

    def __init__(self, owner: type, name: Any) -> None:
        self._owner, self._name = owner, name
        self._value = vars(owner).get(name, _ABSENT)

    def restore(self) -> None:
        if self._value is not _ABSENT:
            type.__setattr__(self._owner, self._name, self._value)
        elif self._name in vars(self._owner):
            type.__delattr__(self._owner, self._name)

    def again(self) -> ClassAttribute:
        return ClassAttribute(self._owner, self._name)


class Cell(_Held):
    def __init__(self, cell: types.CellType) -> None:
        self._cell = cell
        try:
            self._value = cell.cell_contents
        except ValueError:
            self._value = _ABSENT

    def restore(self) -> None:
        if self._value is not _ABSENT:
            self._cell.cell_contents = self._value
        else:
            del self._cell.cell_contents

    def again(self) -> Cell:
        return Cell(self._cell)


class Slot(_Held):
    """The content of an entry of an object's `__slots__`."""

    def __init__(self, owner: Any, descriptor: types.MemberDescriptorType) -> None:
        self._owner, self._descriptor = owner, descriptor
        try:
            self._value = descriptor.__get__(owner)
        except AttributeError:
            self._value = _ABSENT

    def restore(self) -> None:
        if self._value is not _ABSENT:
            self._descriptor.__set__(self._owner, self._value)
        elif self.again()._value is not _ABSENT:
            self._descriptor.__delete__(self._owner)

    def again(self) -> Slot:
        return Slot(self._owner, self._descriptor)


class Position:
    """Where an iterator is."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator, self._position = iterator, _capture.position_of(iterator)

    def restore(self) -> None:
        _capture.set_position(self._iterator, self._position)

    def again(self) -> Position:
        return Position(self._iterator)

    def agrees(self, other: Position, tolerance: float | None = None) -> bool:
        return _agree(self._position, other._position)


def _agree(mine: Any, others: Any) -> bool:
    if isinstance(mine, tuple) and isinstance(others, tuple):
        return len(mine) == len(others) and all(map(_agree, mine, others))
    if isinstance(mine, int | float):
        return bool(mine == others)
    # A capsule holds a part of an iterator, whose position is compared.
    return mine is others or type(mine).__name__ == type(others).__name__ == "PyCapsule"


class Autocast:
    """The settings of torch's autocast on this thread."""

    def __init__(self) -> None:
        self._settings, self._nesting = autocast(), _nesting()

    def restore(self) -> None:
        set_autocast(self._settings)
        while _nesting() > self._nesting:
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()

    def again(self) -> Autocast:
        return Autocast()

    def agrees(self, other: Autocast, tolerance: float | None = None) -> bool:
        return vars(self) == vars(other)


def _nesting() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


class Generator:
    """The state of a generator of random numbers, of Python, NumPy or torch."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        python = isinstance(generator, random.Random)
        self._state = generator.getstate() if python else generator.get_state()

    def restore(self) -> None:
        if isinstance(self._generator, random.Random):
            self._generator.setstate(self._state)
        else:
            self._generator.set_state(self._state)

    def again(self) -> Generator:
        return Generator(self._generator)

    def agrees(self, other: Generator, tolerance: float | None = None) -> bool:
        if isinstance(self._generator, torch.Generator):
            return torch.equal(self._state, other._state)
        return all(map(numpy.array_equal, self._state, other._state))


class BitGenerator:
    """The state of what a numpy.random.Generator draws from."""

    def __init__(self, generator: numpy.random.Generator) -> None:
        self._generator, self._state = generator, generator.bit_generator.state

    def restore(self) -> None:
        self._generator.bit_generator.state = self._state

    def again(self) -> BitGenerator:
        return BitGenerator(self._generator)

    def agrees(self, other: BitGenerator, tolerance: float | None = None) -> bool:
        return repr(self._state) == repr(other._state)


class Contents:
    """The contents of a list, dict, set or deque."""

    def __init__(self, container: Any) -> None:
        if not isinstance(container, (list, dict, set, deque)):
            raise TypeError(f"expected a container, found {container!r}")
        self._owner, self._items = container, container.copy()

    def restore(self) -> None:
        if isinstance(self._owner, list):
            self._owner[:] = self._items
        elif isinstance(self._owner, set):  # elements that stay keep their place
            self._owner.intersection_update(self._items)
            self._owner.update(self._items)
        elif isinstance(self._owner, dict):
            pairs = ([(key, id(value)) for key, value in each.items()]
                     for each in (self._owner, self._items))  # fmt: skip
            if next(pairs) != next(pairs):
                _refill(self._owner, self._items)
        else:
            self._owner.clear()
            self._owner.extend(self._items)

    def again(self) -> Contents:
        return Contents(self._owner)

    def agrees(self, other: Contents, tolerance: float | None = None) -> bool:
        if isinstance(self._owner, set):
            return self._items == other._items
        mine, others = self._items, other._items
        if isinstance(self._owner, deque):
            mine, others = list(mine), list(others)
        return difference(mine, others, tolerance=tolerance) is None


def containers_of(snapshots: list[Any]) -> dict[int, Any]:
    """By address, copies of the containers among what these are of, as before the first one."""
    copies: dict[int, Any] = {}
    for each in reversed(snapshots):
        if isinstance(each, (Contents, Entry, Item)):
            twin = copy.copy(each)
            twin._owner = copies.setdefault(id(each._owner), each._owner.copy())
            twin.restore()
    return copies


def _refill(owner: dict, items: dict) -> None:
    owner.clear()
    owner.update(items)
