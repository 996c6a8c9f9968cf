# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of any framework as PyTorch tensors on the same memory, by DLPack."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from torch._C._functorch import is_functorch_wrapped_tensor

from weft import errors
from weft.te import capsules

_CPU = 1
# Frameworks whose arrays are immutable, which capsules older than DLPack 1.0 cannot say.
IMMUTABLE = {"jax": "JAX", "jaxlib": "JAX", "tensorflow": "TensorFlow"}


@dataclass(frozen=True)
class Spec:
    """What a kernel expects of an argument. dtype: the name of its element type."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @functools.cached_property
    def torch_dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype)  # type: ignore[no-any-return]

    def refuse(self, expected: str, found: Any) -> NoReturn:
        raise errors.ArgumentError(f"argument {self.name!r}: expected {expected}, found {found}")


def to_tensor(array: Any, spec: Spec, written: bool) -> torch.Tensor:
    """The array as a tensor on the same memory. An array that PyTorch cannot represent, such as one
    with negative strides, is copied if it is only read.

    Raises: errors.ArgumentError for another dtype, shape or device, and for read-only memory that
    the kernel writes.
    """
    if isinstance(array, torch.Tensor):
        tensor = _plain(array, spec, written)
    elif isinstance(array, np.ndarray):
        tensor = _of_numpy(array, spec, written)
    elif hasattr(array, "__dlpack__"):
        tensor = _of_dlpack(array, spec, written)
    else:
        spec.refuse("a tensor or array that has __dlpack__", type(array).__qualname__)
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype != spec.dtype:
        spec.refuse(f"dtype {spec.dtype}", dtype)
    if tuple(tensor.shape) != spec.shape:
        spec.refuse(f"shape {list(spec.shape)}", list(tensor.shape))
    return tensor


def _plain(tensor: torch.Tensor, spec: Spec, written: bool) -> torch.Tensor:
    if is_functorch_wrapped_tensor(tensor):
        spec.refuse("a tensor with memory", "one inside of a transform of torch.func")
    if tensor.layout != torch.strided:
        spec.refuse("a tensor with strides and memory", f"one of {tensor.layout}")
    if tensor.device.type != "cpu":
        spec.refuse("a tensor on device cpu", f"device {tensor.device}")
    if tensor.requires_grad and torch.is_grad_enabled():
        spec.refuse(
            "a tensor without gradients (te.kernel records them)",
            "one that requires gradients",
        )
    if tensor.is_neg() or tensor.is_conj():
        if written:
            spec.refuse("a tensor with its own values", "a lazily negated view")
        return tensor.resolve_neg().resolve_conj().detach()
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        spec.refuse("a plain tensor", f"the subclass {type(tensor).__qualname__}")
    return tensor.detach() if tensor.requires_grad else tensor


def _of_numpy(array: np.ndarray, spec: Spec, written: bool) -> torch.Tensor:
    if written and not array.flags.writeable:
        spec.refuse("memory that may be written", "a read-only array")
    if isinstance(array, np.ma.MaskedArray):
        spec.refuse("an array without a mask", type(array).__qualname__)
    if not array.dtype.isnative:
        spec.refuse(f"dtype {spec.dtype}", f"{array.dtype} in another byte order")
    if str(array.dtype) != spec.dtype:
        spec.refuse(f"dtype {spec.dtype}", array.dtype)
    describable = all(
        stride >= 0 and stride % array.itemsize == 0
        for stride, size in zip(array.strides, array.shape)
    )
    if not describable:
        if written:
            spec.refuse("strides that are not negative", f"strides {list(array.strides)} in bytes")
        array = np.ascontiguousarray(array)
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        # The warning says that the array might be written, which it is not.
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


def _of_dlpack(array: Any, spec: Spec, written: bool) -> torch.Tensor:
    if hasattr(array, "__dlpack_device__"):
        kind, number = array.__dlpack_device__()
        if int(kind) != _CPU:
            spec.refuse("an array on the CPU", f"DLPack device ({int(kind)}, {number})")
    framework = IMMUTABLE.get(type(array).__module__.partition(".")[0])
    if written and framework is not None:
        spec.refuse("memory that may be written", f"an array of {framework}, which is immutable")
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer older than DLPack 1.0, which cannot export read-only arrays
        capsule = array.__dlpack__()
    except BufferError as error:
        spec.refuse("memory that DLPack can hand over", f"an array that refuses ({error})")
    described = capsules.tensor_of(capsule)
    if described is None:
        spec.refuse(
            "a DLPack capsule from __dlpack__", f"{type(capsule).__qualname__}, or a used one"
        )
    if described.device_type != _CPU:
        spec.refuse("an array on the CPU", f"a capsule of DLPack device {described.device_type}")
    strides = capsules.strides_of(described)
    if written and min(strides, default=0) < 0:
        spec.refuse("strides that are not negative", f"strides {strides}")
    flags = capsules.flags(capsule)
    if written and flags & capsules.READ_ONLY:
        spec.refuse("memory that may be written", "an array that exports it as read-only")
    if written and flags & capsules.COPIED:
        spec.refuse("the array's own memory", "a copy, which is all that it exports")
    try:
        return capsules.to_tensor(capsule, described)
    except (RuntimeError, BufferError) as error:
        spec.refuse(f"dtype {spec.dtype}", f"what PyTorch does not take ({error})")


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two elements share memory, as in an expanded tensor."""
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size == 0:
            return False
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses of the first byte of the tensor's memory and of the byte after its last."""
    start = tensor.data_ptr()
    if tensor.numel() == 0:
        return start, start
    last = sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape))
    return start, start + (last + 1) * tensor.element_size()


def empty_like(template: Any, spec: Spec) -> Any:
    """An array for a result, for a caller who gave `template`: an array of NumPy, or a tensor."""
    if isinstance(template, np.ndarray) and spec.dtype != "bfloat16":
        return np.empty(spec.shape, spec.dtype)
    return torch.empty(spec.shape, dtype=spec.torch_dtype)


def like(template: Any, made: Any) -> Any:
    """The array `made` by `empty_like` as an array of the framework of `template`, on the same
    memory."""
    if template is None or isinstance(template, torch.Tensor) or isinstance(made, np.ndarray):
        return made
    if isinstance(template, np.ndarray):
        return made.numpy()
    namespace = getattr(template, "__array_namespace__", None)
    return namespace().from_dlpack(made) if namespace else made
