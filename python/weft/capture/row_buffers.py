# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that a loop of Python fills row by row, as `out[t] = h`, while the loop is traced.

Nothing of a write is traced until something else asks for the tensor: then its rows are stacked, as
those of a list would be, and written at once. A row that is read is given as what has been written
there. So the steps of such a loop do nothing but compute, and can be a scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, get_proxy_mode

from weft.capture.in_place_calls import version_of
from weft.capture.skipped_loop import step_of
from weft.capture.step_calls import (
    is_plain_call,
    known_size,
    looks_of,
    reaches_all,
    tensors_in,
)
from weft.capture.traced_nodes import NotRepeated, node_behind, nodes_between, tracer_now, track

_aten = torch.ops.aten
# What makes a tensor that shares its memory with no other.
_FACTORIES = frozenset(
    [
        *(_aten.empty, _aten.zeros, _aten.ones, _aten.full),
        *(_aten.new_empty, _aten.new_zeros, _aten.new_ones, _aten.new_full),
        *(_aten.empty_like, _aten.zeros_like, _aten.ones_like, _aten.full_like),
    ]
)
_READ, _WRITE = torch.Tensor.__getitem__, torch.Tensor.__setitem__

Call = Callable[[Callable, tuple, dict], Any]  # of a function of torch


class _Buffer:
    """rows: what has been written to elements of a dim since the tensor was last asked for, with
    the versions that these had. slices: they were written as slices of one element."""

    def __init__(self, tensor: FakeTensor, dim: int, slices: bool) -> None:
        self.tensor, self.dim, self.slices = tensor, dim, slices
        self.rows: dict[int, tuple[FakeTensor, int]] = {}
        self.records = torch.is_grad_enabled()

    @property
    def kind(self) -> tuple[int, bool]:
        return self.dim, self.slices


class RowBuffers:
    """The tensors that are written so, of one trace. call: calls a function of torch within it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._buffers: dict[int, _Buffer] = {}
        # Nodes of a tensor's that are its own reads and writes, and the elements that were read
        # before they were written.
        self._own: dict[torch.fx.Node, set[torch.fx.Node]] = {}
        self._views: dict[torch.fx.Node, set[tuple[int, int]]] = {}
        # Copies of rows, with their versions, and the tensors whose they are, behind their rows.
        self._given: list[tuple[FakeTensor, int]] = []
        self._versions: dict[int, tuple[FakeTensor, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._buffers)

    def taken(self, function: Callable, args: tuple, kwargs: dict) -> tuple[Any] | None:
        """What the call gives, if it writes or reads a row; else what it asks for is written."""
        if function is _WRITE and not kwargs and self._writes(*args):
            return (None,)
        if function is _READ and not kwargs and (row := self._reads(*args)) is not None:
            return (row,)
        if self._buffers:
            if reaches_all(function):
                self.write_all()
            for tensor in tensors_in((args, kwargs)):
                self._write(id(tensor))
        return None

    def write_all(self) -> None:
        for number in list(self._buffers):
            self._write(number)

    def check(self, results: Sequence[Any]) -> None:
        """Raises: NotRepeated, where it can be told that a row was given as a copy."""
        with torch._C.DisableTorchFunction():
            storages = {row.untyped_storage()._cdata for row, _ in self._given}
            fakes = [each for each in results if isinstance(each, FakeTensor)]
            tensors = [each for each in fakes if each.layout is torch.strided]
            if any(each.untyped_storage()._cdata in storages for each in tensors):
                raise NotRepeated("a row that was read is a result")
            noted = [*self._given, *self._versions.values()]
            if self._given and any(each._version != version for each, version in noted):
                raise NotRepeated("a row that was read is changed in place")

    def _writes(self, tensor: Any, index: Any, value: Any) -> bool:
        """Whether the row is noted."""
        if not isinstance(tensor, FakeTensor) or not isinstance(value, FakeTensor):
            return False
        with torch._C.DisableTorchFunction():
            place = _place(tensor, index)
            if place is None or value is tensor or tensor.device != value.device:
                return False
            at, dim, slices = place
            dtype, shape, *_ = looks_of(tensor)
            row = (*shape[:dim], *([1] if slices else []), *shape[dim + 1 :])
            if (dtype, row) != looks_of(value)[:2]:
                return False
        buffer = self._buffers.get(id(tensor))
        if buffer is not None and (buffer.kind != (dim, slices) or at in buffer.rows):
            self._write(id(tensor))
            buffer = None
        if buffer is None:
            if not self._is_own(tensor) or self._is_row(tensor) or not is_plain_call():
                return False
            buffer = _Buffer(tensor, dim, slices)
        if any(at == read or dim != along for along, read in self._views_of(tensor)):
            return False
        self._buffers[id(tensor)] = buffer
        self._write(id(value))
        with torch._C.DisableTorchFunction():
            buffer.rows[at] = (value, version_of(value))
        return True

    def shows(self, tensor: FakeTensor) -> bool:
        """Whether it is a row that was read, or what rows may have been read of."""
        rows = [row for row, _ in self._given]
        return any(row is tensor for row in rows) or (bool(rows) and id(tensor) in self._versions)

    def _views_of(self, tensor: FakeTensor) -> set[tuple[int, int]]:
        return self._views.setdefault(node_behind(tensor), set())

    def _is_row(self, tensor: FakeTensor) -> bool:
        """Whether it is what a row is to be, before anything is written to it."""
        buffers = self._buffers.values()
        return any(value is tensor for each in buffers for value, _ in each.rows.values())

    def _is_own(self, tensor: FakeTensor) -> bool:
        """Whether nothing but rows of the tensor has been read or written since it was made."""
        if step_of(tensor) is not None or get_proxy_mode() is None:
            return False
        try:
            node = node_behind(tensor)
        except NotRepeated:
            return False
        packet = getattr(node.target, "overloadpacket", None)
        return packet in _FACTORIES and node.users.keys() <= self._own.get(node, set())

    def _reads(self, tensor: Any, index: Any) -> FakeTensor | None:
        """A row: a copy of what has been written there, or a view of what it was made with."""
        if not isinstance(tensor, FakeTensor):
            return None
        with torch._C.DisableTorchFunction():
            place = _place(tensor, index)
        if place is None or not self._is_own(tensor):
            return None
        buffer = self._buffers.get(id(tensor))
        if buffer is not None and self._is_full(buffer):
            return None
        if buffer is not None and place[0] in buffer.rows and place[1:] == buffer.kind:
            value, version = buffer.rows[place[0]]
            _refuse_changed(value, version)
            row: FakeTensor = self._call(torch.clone, (value,), {})
            self._given.append((row, row._version))
            return row
        if buffer is not None and (place[0] in buffer.rows or place[1] != buffer.dim):
            return None
        begin = tracer_now().graph._root.prev
        with torch._C.DisableTorchFunction():
            row = torch.clone(tensor[index])
        own = self._own.setdefault(node_behind(tensor), set())
        own.update(nodes_between(begin, tracer_now().graph._root.prev))
        self._views_of(tensor).add((place[1], place[0]))
        self._given.append((row, row._version))
        self._note_version(tensor)
        return row

    def _is_full(self, buffer: _Buffer) -> bool:
        """Whether no row is left that has been neither read nor written: the loop is over."""
        found = len(buffer.rows) + len(self._views_of(buffer.tensor))
        return found == known_size(buffer.tensor.shape[buffer.dim])

    def _write(self, number: int) -> None:
        """Writes the rows that have been noted."""
        buffer = self._buffers.pop(number, None)
        if buffer is None:
            return
        tensor = buffer.tensor
        if not self._is_own(tensor):
            raise NotRepeated("a tensor was read while its rows were written")
        if buffer.records != torch.is_grad_enabled() or not is_plain_call():
            raise NotRepeated("rows are written under other settings than those of their steps")
        for value, version in buffer.rows.values():
            _refuse_changed(value, version)
        with torch._C.DisableTorchFunction():
            _refill(tensor, self._filled(buffer))
        self._note_version(tensor)

    def _note_version(self, tensor: FakeTensor) -> None:
        with torch._C.DisableTorchFunction():
            self._versions[id(tensor)] = (tensor, tensor._version)

    def _filled(self, buffer: _Buffer) -> FakeTensor:
        """The tensor with its rows in their places."""
        tensor, dim, parts, end = buffer.tensor, buffer.dim, [], 0
        for first, rows in _runs(buffer):
            if first > end:
                parts.append(tensor.narrow(dim, end, first - end))
            parts.append(self._call(torch.cat if buffer.slices else torch.stack, (rows, dim), {}))
            end = first + len(rows)
        size = known_size(tensor.shape[dim])
        if end != size:
            parts.append(tensor.narrow(dim, end, size - end))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def _refill(tensor: FakeTensor, filled: FakeTensor) -> None:
    """Makes the tracer take the tensor for the other one."""
    if looks_of(tensor)[:3] != looks_of(filled)[:3]:
        tensor.copy_(filled)
        return
    node = node_behind(filled)
    with disable_proxy_modes_tracing():
        tensor.copy_(filled)
        with torch.no_grad():
            tensor.set_(filled)  # views of it are views of the other
    track(tensor, node)


def _refuse_changed(value: FakeTensor, version: int) -> None:
    with torch._C.DisableTorchFunction():
        if version_of(value) != version:
            raise NotRepeated("what was written to a row is changed in place")


def _runs(buffer: _Buffer) -> Iterator[tuple[int, list[FakeTensor]]]:
    """Rows that lie one behind the other, and where the first one does."""
    places = sorted(buffer.rows)
    first = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[end - 1] + 1:
            yield places[first], [buffer.rows[at][0] for at in places[first:end]]
            first = end


def _place(tensor: FakeTensor, index: Any) -> tuple[int, int, bool] | None:
    """Which element of which dim the index is, and whether it is a slice of that one; None for
    other indices."""
    parts = list(index) if type(index) is tuple else [index]
    rank = tensor.dim()
    if any(each is Ellipsis for each in parts):
        at = next(i for i, each in enumerate(parts) if each is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (rank - len(parts) + 1)
    chosen = [(dim, each) for dim, each in enumerate(parts) if not _is_all(each)]
    if len(parts) > rank or len(chosen) != 1:
        return None
    ((dim, each),) = chosen
    size = known_size(tensor.shape[dim])
    if size is None:
        return None
    if type(each) is int:
        return (each % size, dim, False) if -size <= each < size else None
    if type(each) is slice and each.step is None:
        begin, end = each.start, each.stop
        if type(begin) is int and type(end) is int and 0 <= begin == end - 1 < size:
            return begin, dim, True
    return None


def _is_all(part: Any) -> bool:
    return type(part) is slice and part == slice(None)
