# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DLPack's capsules: flags, and tensors with a byte offset, which PyTorch does not take.

Layouts are those of https://github.com/dmlc/dlpack, include/dlpack/dlpack.h.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch

READ_ONLY, COPIED = 1, 2  # flags


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


def flags(capsule: Any) -> int:
    """Those of DLPack 1.0; none of a capsule of before."""
    if not _is_valid(capsule, b"dltensor_versioned"):
        return 0
    return _Versioned.from_address(_pointer(capsule, b"dltensor_versioned")).flags


def to_tensor(capsule: Any) -> torch.Tensor:
    """A tensor on the capsule's memory, which it keeps alive."""
    for name, kind in ((b"dltensor_versioned", _Versioned), (b"dltensor", _Tensor)):
        if _is_valid(capsule, name):
            head = kind.from_address(_pointer(capsule, name))
            described = head.tensor if kind is _Versioned else head
            key = (described.code, described.bits)
            if described.byte_offset and described.lanes == 1 and key in _DTYPES:
                return _with_offset(capsule, described, _DTYPES[key])
    return torch.utils.dlpack.from_dlpack(capsule)


def _with_offset(capsule: Any, described: _Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The capsule is not consumed, but held: it frees the memory when it goes."""
    shape = [described.shape[dim] for dim in range(described.ndim)]
    strides = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    if described.strides:
        strides = [described.strides[dim] for dim in range(described.ndim)]
    reach = sum(stride * (size - 1) for stride, size in zip(strides, shape)) + 1
    size = described.bits // 8
    memory = (ctypes.c_uint8 * (reach * size)).from_address(described.data + described.byte_offset)
    memory.capsule = capsule
    return torch.from_numpy(np.frombuffer(memory, np.uint8)).view(dtype).as_strided(shape, strides)
