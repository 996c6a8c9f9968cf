# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of ONNX as torch's, and what is known of them while a program is traced.

Shapes, axes and sizes are tensors in ONNX. Those that depend on nothing but the shapes of inputs
and on constants are computed at once, on tensors with values, so that tracing sees numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy
import onnx
import torch
from torch.utils._python_dispatch import _disable_current_modes

from weft import errors

DTYPES = {
    onnx.TensorProto.FLOAT: torch.float32,
    onnx.TensorProto.UINT8: torch.uint8,
    onnx.TensorProto.INT8: torch.int8,
    onnx.TensorProto.UINT16: torch.uint16,
    onnx.TensorProto.INT16: torch.int16,
    onnx.TensorProto.INT32: torch.int32,
    onnx.TensorProto.INT64: torch.int64,
    onnx.TensorProto.BOOL: torch.bool,
    onnx.TensorProto.FLOAT16: torch.float16,
    onnx.TensorProto.DOUBLE: torch.float64,
    onnx.TensorProto.UINT32: torch.uint32,
    onnx.TensorProto.UINT64: torch.uint64,
    onnx.TensorProto.COMPLEX64: torch.complex64,
    onnx.TensorProto.COMPLEX128: torch.complex128,
    onnx.TensorProto.BFLOAT16: torch.bfloat16,
}


def dtype_of(number: int) -> torch.dtype:
    """Raises: errors.UnsupportedError, for strings and numbers of fewer than eight bits."""
    if number not in DTYPES:
        raise errors.UnsupportedError(
            f"tensors of type {onnx.TensorProto.DataType.Name(number)} are not supported"
        )
    return DTYPES[number]


def tensor_of(proto: onnx.TensorProto) -> torch.Tensor:
    """Raises: errors.UnsupportedError, for a type that torch lacks; errors.ModelError, if its
    data is not what its shape needs."""
    dtype = dtype_of(proto.data_type)
    try:
        array = onnx.numpy_helper.to_array(proto)
    except (ValueError, TypeError, onnx.checker.ValidationError) as error:
        raise errors.ModelError(f"tensor {proto.name!r} cannot be read: {error}") from error
    array = numpy.array(array, order="C")  # writable, torch's own
    if dtype == torch.bfloat16:
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


@contextlib.contextmanager
def real_values() -> Iterator[None]:
    """Inside, tensors are made and read with values, though a program is being traced."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def has_values(value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter)


def numbers(tensor: torch.Tensor) -> list[Any]:
    """What a tensor holds, flat. While tracing, a tensor without values ends the trace."""
    if has_values(tensor):
        with real_values():
            return tensor.flatten().tolist()
    return tensor.flatten().tolist()


def number(tensor: torch.Tensor) -> Any:
    (found,) = numbers(tensor)
    return found


def is_tracing() -> bool:
    return torch._C._len_torch_dispatch_stack() > 0
