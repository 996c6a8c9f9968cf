# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which values of Python's and torch's own classes a program may depend on, and which have no
guard.
"""

from __future__ import annotations

import array
import contextvars
import ctypes
import io
import mmap
import queue
import threading
import types
import weakref
from typing import Any

import numpy
import torch
from torch.utils.hooks import RemovableHandle

from weft._core import Callable as CompiledCallable
from weft.capture.observation import READERS
from weft.capture.reachability import is_builtin, is_stable
from weft.capture.signature import PLAIN

MOST_WATCHED_BYTES = 64 * 1024  # compared on every call
BUFFERS = (numpy.ndarray, bytearray, array.array, *ctypes._SimpleCData.__mro__[1:2])
# Of Python's own classes, those whose objects hold what changes and have no guard.
STREAMS = (io.IOBase, memoryview, mmap.mmap, queue.SimpleQueue, ctypes._Pointer)
# Windows on what others hold.
VIEWS = (
    *(type(view) for view in ({}.keys(), {}.values(), {}.items())),
    *(types.MappingProxyType, types.CellType, weakref.ref, weakref.ProxyType),
    *(torch.UntypedStorage, torch.TypedStorage),
)
_CONTAINERS = (tuple, list, dict, set, frozenset, torch.nn.Module)

# Whether one is held tells the time of other threads, and a call that takes it waits for them.
LOCKS = (
    *(type(threading.Lock()), type(threading.RLock())),
    *(threading.Condition, threading.Semaphore, threading.Barrier),
)
# They mean something else to every thread.
OF_THREADS = (threading.local, contextvars.ContextVar)
# What a handle removes is watched where it is.
BY_IDENTITY = (types.ModuleType, types.FunctionType, CompiledCallable, RemovableHandle)
# Their classes have attributes, which change without a program noticing.
_UNINTERESTING = frozenset(
    {"contextlib", "logging", "weakref", "torch.fx", "torch.jit", "torch._ops"}
)


def has_identity(entry: object) -> bool:
    """Whether a set that holds it changes only when it holds other entries."""
    functions = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
    return type(entry) in PLAIN or isinstance(entry, (type, *functions))


def is_of_trace(entries: dict[Any, Any], key: Any, value: Any) -> bool:
    """Whether a trace has entered, for the class of its own tensors, the object that is there for
    `torch.Tensor`: in PyTorch's call a table by class, such as einops keeps, holds as before."""
    if not isinstance(key, type) or not key.__module__.startswith("torch._subclasses."):
        return False
    return type(value) not in PLAIN and entries.get(torch.Tensor) is value


def is_reader(value: Any) -> bool:
    return (is_builtin(value) or type(value) is types.FunctionType) and value in READERS


def never_changes(value: Any) -> bool:
    """Whether an object of Python's or torch's holds nothing that could come to be otherwise."""
    kind = type(value)
    if not is_stable(kind) or kind.__hash__ is None or isinstance(value, (*_CONTAINERS, *BUFFERS)):
        return False
    if type(getattr(value, "__dict__", None)) is not dict:
        return True
    module = kind.__module__
    return any(module == name or module.startswith(f"{name}.") for name in _UNINTERESTING)
