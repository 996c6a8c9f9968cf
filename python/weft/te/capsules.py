# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DLPack capsules: their flags, and tensors with a byte offset, which PyTorch does not accept.

Layouts are those of https://github.com/dmlc/dlpack, include/dlpack/dlpack.h.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch

READ_ONLY, COPIED = 1, 2  # flags of DLPack


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]

_DTYPES = {
    (0, 8): torch.int8,
    (0, 16): torch.int16,
    (0, 32): torch.int32,
    (0, 64): torch.int64,
    (1, 8): torch.uint8,
    (2, 16): torch.float16,
    (2, 32): torch.float32,
    (2, 64): torch.float64,
    (4, 16): torch.bfloat16,
    (6, 8): torch.bool,
}


def tensor_of(capsule: Any) -> _Tensor | None:
    """The tensor that the capsule describes; None if it is not a DLPack capsule, or was consumed
    already."""
    for name, kind in ((b"dltensor_versioned", _Versioned), (b"dltensor", _Tensor)):
        if _is_valid(capsule, name):
            head = kind.from_address(_pointer(capsule, name))
            return head.tensor if kind is _Versioned else head
    return None


def flags(capsule: Any) -> int:
    """The flags of a DLPack 1.0 capsule; 0 for an older one."""
    if not _is_valid(capsule, b"dltensor_versioned"):
        return 0
    return _Versioned.from_address(_pointer(capsule, b"dltensor_versioned")).flags


def strides_of(described: _Tensor) -> list[int]:
    """The strides in elements. Null strides mean that the tensor is compact."""
    if described.strides:
        return [described.strides[dim] for dim in range(described.ndim)]
    strides = [1] * described.ndim
    for dim in range(described.ndim - 2, -1, -1):
        strides[dim] = strides[dim + 1] * described.shape[dim + 1]
    return strides


def to_tensor(capsule: Any, described: _Tensor) -> torch.Tensor:
    """A tensor on the capsule's memory, which it keeps alive. Negative strides, which no tensor of
    PyTorch has, make it a copy.

    Raises: RuntimeError, BufferError of PyTorch, for what no tensor can represent.
    """
    key, is_copied = (described.code, described.bits), min(strides_of(described), default=0) < 0
    if (described.byte_offset or is_copied) and described.lanes == 1 and key in _DTYPES:
        return _by_hand(capsule, described, _DTYPES[key])
    if is_copied:  # PyTorch would abort the process
        raise BufferError(f"negative strides, of DLPack type {key} by {described.lanes} lanes")
    return torch.utils.dlpack.from_dlpack(capsule)


def _by_hand(capsule: Any, described: _Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A tensor made by hand. The capsule is not consumed but held, and frees the memory when it
    dies."""
    shape = [described.shape[dim] for dim in range(described.ndim)]
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    strides, size = strides_of(described), described.bits // 8
    steps = [stride * (extent - 1) for stride, extent in zip(strides, shape)]
    first = sum(step for step in steps if step < 0)
    reach = sum(map(abs, steps)) + 1
    place = described.data + described.byte_offset + first * size
    memory = (ctypes.c_uint8 * (reach * size)).from_address(place)
    memory.capsule = capsule
    elements = np.frombuffer(memory, np.uint8)
    if first == 0:
        return torch.from_numpy(elements).view(dtype).as_strided(shape, [*map(abs, strides)])
    lifted = np.lib.stride_tricks.as_strided(
        elements.view(f"i{size}")[-first:], shape, [stride * size for stride in strides]
    )
    return torch.from_numpy(lifted.copy()).view(dtype)
