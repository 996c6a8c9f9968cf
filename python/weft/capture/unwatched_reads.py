# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hears what a traced call reads of torch and of the interpreter that no guard watches: settings,
what a tensor tells of itself besides its form, the stack, the collector of garbage.

It replaces functions of Python and torch for good and is for a child process (isolated.py) alone.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy
import torch

Note = Callable[[str, types.FrameType], bool]

_SETTINGS = (
    (torch, "is_anomaly_enabled", "is_anomaly_check_nan_enabled", "is_warn_always_enabled"),
    (torch, "get_num_threads", "get_num_interop_threads", "get_deterministic_debug_mode"),
    (torch.backends.cuda, "flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled"),
    (torch.backends.cuda, "cudnn_sdp_enabled"),
    (torch, "get_autocast_dtype", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype"),
    (torch.__future__, "get_overwrite_module_params_on_conversion"),
    (torch.__future__, "get_swap_module_params_on_conversion"),
    (torch.backends.mha, "get_fastpath_enabled"),
    (numpy, "geterr", "getbufsize", "get_printoptions"),
    (numpy.random, "get_state"),
)
_COLLECTOR = (
    *("isenabled", "get_threshold", "get_count", "get_stats", "get_objects"),
    *("get_debug", "get_freeze_count"),
)
FUNCTIONS = frozenset(
    getattr(module, name)
    for module, *names in (*_SETTINGS, (gc, *_COLLECTOR, "get_referrers"), (sys, "_getframe"))
    for name in names
)
# Of a tensor, besides its gradient: attributes, then methods.
_ATTRIBUTES = ("_version", "_base", "grad_fn", "retains_grad", "_backward_hooks")
_METHODS = (
    *("is_shared", "data_ptr", "is_pinned", "is_inference"),
    *("storage_offset", "untyped_storage", "storage"),
    *("is_set_to", "__hash__"),
    *("__repr__", "__format__"),  # which go by settings, and by what a trace does not know
)
_getframe = sys._getframe


def install(note: Note) -> None:
    """note: told what the call does, and by which frame."""
    for module, *names in _SETTINGS:
        for name in names:
            setattr(module, name, _heard(getattr(module, name), "asks for a setting", note))
    for name in (*_COLLECTOR, "get_referrers"):
        setattr(gc, name, _heard(getattr(gc, name), "asks the collector of garbage", note))
    _flags(note)
    for name in _ATTRIBUTES:
        setattr(torch.Tensor, name, _attribute(getattr(torch.Tensor, name), name, note))
    for name in _METHODS:
        what = f"asks a tensor for {name}"
        setattr(torch.Tensor, name, _heard(getattr(torch.Tensor, name), what, note))
    sys._getframe = _stack(note)


def _heard(function: Callable, what: str, note: Note) -> Callable:
    @functools.wraps(function)
    def heard(*args: Any, **kwargs: Any) -> Any:
        note(what, _getframe(1))
        return function(*args, **kwargs)

    return heard


def _attribute(getter: Any, name: str, note: Note) -> property:
    def read(tensor: torch.Tensor) -> Any:
        note(f"asks a tensor for {name}", _getframe(1))
        return getter.__get__(tensor)

    write = getattr(getter, "__set__", None)
    return property(read, write, getattr(getter, "__delete__", None))


def _flags(note: Note) -> None:
    """Those such as torch.backends.mkldnn.enabled."""
    get = torch.backends.ContextProp.__get__

    def read(flag: Any, instance: Any, owner: Any) -> Any:
        note("asks for a setting", _getframe(1))
        return get(flag, instance, owner)

    def precision(flag: Any, name: str) -> Any:
        note("asks for a setting", _getframe(1))
        return find(flag, name)

    def fill(module: types.ModuleType) -> bool:
        note("asks for a setting", _getframe(1))
        return filled.__get__(module)

    torch.backends.ContextProp.__get__ = read
    precisions, kind = torch.backends._FP32Precision, type(torch.utils.deterministic)
    find, precisions.__getattr__ = precisions.__getattr__, precision
    filled = kind.fill_uninitialized_memory
    kind.fill_uninitialized_memory = property(fill, filled.fset)


def _stack(note: Note) -> Callable[..., types.FrameType]:
    """Python's own modules look at their callers for what they make, such as named tuples."""

    def frame(depth: int = 0) -> types.FrameType:
        caller = _getframe(1)
        name = str(caller.f_globals.get("__name__"))
        if (
            name in ("inspect", "traceback")
            or name.partition(".")[0] not in sys.stdlib_module_names
        ):
            note("looks at its callers", caller)
        return _getframe(depth + 1)

    return frame
