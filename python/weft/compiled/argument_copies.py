# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of a call's arguments, to run the call later as it is now.

The copies do not see what the call, or afterwards its caller, writes to the arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import torch

from weft.capture.signature import describe
from weft.compiled.flat_calls import FlatCall
from weft.compiled.requests import Request

_ALIGNMENT = 64  # bytes; at least the size of an element of any dtype


def as_it_is(request: Request) -> Request | None:
    """The request with copies of its arguments; None if they cannot be copied. Tensors of the
    target itself are not copied."""
    call = FlatCall.of(request.args, request.kwargs)
    if call is None:
        return None
    own = {id(each) for each in request.state.tensors}
    args, kwargs = call.rebuilt(_copies(call.leaves, own))
    return replace(request, args=args, kwargs=kwargs, signature=describe(args, kwargs))


def _copies(leaves: Sequence[Any], kept: Collection[int]) -> list[Any]:
    """The copies, with the same strides, which share memory with one another as the originals do.
    kept: the addresses of tensors that are not copied."""
    spans: dict[int, tuple[int, int]] = {}  # the bytes of each storage that tensors use
    tensors = {
        id(each): each
        for each in leaves
        if isinstance(each, torch.Tensor)
        and id(each) not in kept
        and not (each.is_conj() or each.is_neg())
    }
    memory: dict[int, torch.UntypedStorage] = {}
    copies: dict[int, torch.Tensor] = {}
    for tensor in tensors.values():
        if tensor.numel() == 0:
            continue
        storage, span = tensor.untyped_storage().data_ptr(), _span(tensor)
        begin, end = spans.get(storage, span)
        spans[storage] = min(begin, span[0]), max(end, span[1])
    with torch.no_grad():
        for address, tensor in tensors.items():
            storage = tensor.untyped_storage()
            if tensor.numel() == 0:
                copies[address] = _like(tensor, torch.UntypedStorage(), 0)
                continue
            begin, end = spans[storage.data_ptr()]
            if (own := memory.get(storage.data_ptr())) is None:
                octets = torch.empty(0, dtype=torch.uint8)
                octets.set_(storage, begin, (end - begin,), (1,))  # type: ignore[call-overload]
                own = memory[storage.data_ptr()] = octets.clone().untyped_storage()
            place = tensor.storage_offset() - begin // tensor.element_size()
            copies[address] = _like(tensor, own, place)
    return [copies.get(id(each), each) for each in leaves]


def _like(tensor: torch.Tensor, storage: torch.UntypedStorage, place: int) -> torch.Tensor:
    """A tensor like `tensor` whose first element is at the byte `place` of the storage."""
    made = torch.empty(0, dtype=tensor.dtype)
    made.set_(storage, place, tensor.size(), tensor.stride())  # type: ignore[call-overload]
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad)


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte of the storage that the tensor may read, rounded down, and the byte after the
    last."""
    width = tensor.element_size()
    begin = tensor.storage_offset() * width
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return begin - begin % _ALIGNMENT, begin + (last + 1) * width
