# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that a loop of Python lengthens step by step, as `out = torch.cat([out, h])`, while the
loop is traced.

Each step would have another shape, so that no two are alike. From the second such call on nothing
is traced: the pieces are noted, and joined when something else asks for the tensor, as those of a
list would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from weft.capture.in_place_calls import is_plain_now, version_of
from weft.capture.skipped_loop import Like
from weft.capture.step_calls import looks_of, reaches_all, tensors_in
from weft.capture.traced_nodes import NotRepeated, node_behind, track_as_own

CATS = frozenset([torch.cat, torch.concat, torch.concatenate])

Call = Callable[[Callable, tuple, dict], Any]  # of a function of torch


@dataclass
class _Joined:
    """That a tensor was joined along a dim, of pieces of which one looks so."""

    dim: int
    piece: tuple


@dataclass
class _Grown:
    """That a tensor is another one, and pieces ahead of it or behind it. versions: of all."""

    of: FakeTensor
    pieces: list[FakeTensor]
    is_ahead: bool
    dim: int
    versions: list[int]
    records: bool


class GrowingTensors:
    """Those of one trace. call: calls a function of torch within it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._pending: dict[int, FakeTensor] = {}

    def taken(self, function: Callable, args: tuple, kwargs: dict) -> FakeTensor | None:
        """What the call gives, if it lengthens a tensor; else what it asks for is joined."""
        if function in CATS:
            with torch._C.DisableTorchFunction():
                grown = self._lengthened(*args, **kwargs)
            if grown is not None:
                return grown
        if self._pending:
            if reaches_all(function):
                self.join(list(self._pending.values()))
            self.join(tensors_in((args, kwargs)))
        return None

    def note(self, function: Callable, args: tuple, kwargs: dict, result: Any) -> None:
        """The result of a call that was traced."""
        if function not in CATS or not isinstance(result, FakeTensor):
            return
        with torch._C.DisableTorchFunction():
            if (given := _given(*args, **kwargs)) is not None:
                tensors, dim = given
                vars(result)["_weft_joined"] = _Joined(dim, looks_of(tensors[-1])[:2])

    def join(self, tensors: Any) -> None:
        """Makes those of the tensors that were lengthened known to the tracer."""
        for tensor in tensors:
            if self._pending.pop(id(tensor), None) is not None:
                self._join(tensor)

    def _lengthened(self, *args: Any, **kwargs: Any) -> FakeTensor | None:
        given = _given(*args, **kwargs)
        if given is None or not is_plain_now():
            return None
        tensors, dim = given
        for at in (0, len(tensors) - 1):
            known = vars(tensors[at]).get("_weft_joined")
            pieces = [*tensors[:at], *tensors[at + 1 :]]
            if known is not None and all(
                known == _Joined(dim, looks_of(each)[:2]) and id(each) not in self._pending
                for each in pieces
            ):
                return self._grown(tensors[at], pieces, at > 0, dim, tensors)
        return None

    def _grown(
        self,
        of: FakeTensor,
        pieces: list[FakeTensor],
        is_ahead: bool,
        dim: int,
        tensors: Sequence[FakeTensor],
    ) -> FakeTensor | None:
        records = torch.is_grad_enabled()
        with disable_proxy_modes_tracing(), torch.no_grad():
            like = torch.cat(tensors, dim)
        gradient = records and any(each.requires_grad for each in tensors)
        result = Like(like, gradient).another()
        versions = [*map(version_of, (of, *pieces))]
        vars(result)["_weft_grown"] = _Grown(of, pieces, is_ahead, dim, versions, records)
        vars(result)["_weft_joined"] = _Joined(dim, looks_of(pieces[0])[:2])
        self._pending[id(result)] = result
        return result

    def _join(self, tensor: FakeTensor) -> None:
        first, ahead, behind = tensor, [], []
        while (grown := vars(first).get("_weft_grown")) is not None:
            found = [*map(version_of, (grown.of, *grown.pieces))]
            if found != grown.versions or grown.records != torch.is_grad_enabled():
                raise NotRepeated("what a tensor was lengthened by has changed")
            if grown.is_ahead:
                ahead = [*ahead, *grown.pieces]
            else:
                behind = [*grown.pieces, *behind]
            first, dim = grown.of, grown.dim
        parts = [*([self._cat(ahead, dim)] if ahead else []), first]
        parts += [self._cat(behind, dim)] if behind else []
        node = node_behind(self._cat(parts, dim))
        del vars(tensor)["_weft_grown"]
        track_as_own(tensor, node)

    def _cat(self, tensors: list[FakeTensor], dim: int) -> FakeTensor:
        if len(tensors) == 1:
            return tensors[0]
        joined: FakeTensor = self._call(torch.cat, (tensors, dim), {})
        return joined


def _given(tensors: Any = None, dim: Any = 0, **others: Any) -> tuple[list[FakeTensor], int] | None:
    """The arguments of a call that joins tensors of one type."""
    if others or type(dim) is not int or not isinstance(tensors, (tuple, list)) or len(tensors) < 2:
        return None
    if not all(isinstance(each, FakeTensor) for each in tensors):
        return None
    rank = tensors[0].dim()
    if any(each.dtype != tensors[0].dtype or each.dim() != rank for each in tensors):
        return None
    return (list(tensors), dim % rank) if -rank <= dim < rank else None
