# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether two worlds are equal: values, types, structure, which objects and memory are shared."""

from __future__ import annotations

import functools
import itertools
import random
import types
import weakref
from collections import deque
from typing import Any

import numpy
import torch
from torch._subclasses.fake_tensor import FakeTensor

from capture.observed import plain_text

_PLAIN = (type(None), bool, int, str, bytes, complex, range, slice, type(Ellipsis),
          torch.dtype, torch.device, torch.layout, torch.memory_format)  # fmt: skip
# What rounding takes a native program and PyTorch apart, of the largest number in the tensor; what
# is float64 now may have been computed in float32.
_TOLERANCES = {
    torch.float64: 1e-6,
    torch.float32: 1e-4,
    torch.bfloat16: 5e-2,
    torch.float16: 1e-2,
    torch.complex64: 1e-4,
    torch.complex128: 1e-11,
}
# Inputs are about 1: what is left of them where a mean is near zero has the rounding of theirs.
_LEAST_SCALE = 0.1
_WORLD = "capture_world_"
_NO_STATE = frozenset({"__module__", "__dict__", "__weakref__", "__doc__", "__annotations__",
                       "_abc_impl", "__abstractmethods__", "__dataclass_params__",
                       "__dataclass_fields__"})  # fmt: skip
_COUNTED = (itertools.count, itertools.cycle, itertools.repeat)


class Differs(Exception):
    """Its text says where and how."""


class Comparison:
    """Compares pairs one after the other, and remembers which objects and memory correspond."""

    def __init__(self) -> None:
        self._pairs: dict[int, Any] = {}
        self._back: dict[int, Any] = {}
        self._memory: dict[int, int] = {}
        self._memory_back: dict[int, int] = {}
        self._kept: list[Any] = []

    def compare(self, eager: Any, other: Any, path: str) -> None:
        """Raises: Differs."""
        if eager is other:
            return
        kind = type(eager)
        if not _same_type(kind, type(other)):
            raise Differs(f"{path} is {_shown(other)} instead of {_shown(eager)}")
        if kind is float or isinstance(eager, numpy.floating):
            if not _near(float(eager), float(other)):
                raise Differs(f"{path} is {other!r} instead of {eager!r}")
        elif isinstance(eager, _PLAIN) or isinstance(eager, numpy.generic):
            if eager != other and _shown(eager) != _shown(other):
                raise Differs(f"{path} is {_shown(other)} instead of {_shown(eager)}")
        elif not self._corresponds(eager, other, path):
            self._within(eager, other, path)

    def _corresponds(self, eager: Any, other: Any, path: str) -> bool:
        """Whether the pair has been compared. Tuples have no identity that matters."""
        known = self._pairs.get(id(eager))
        if isinstance(eager, (tuple, frozenset, types.MethodType)):
            return known is other
        if known is not other or self._back.get(id(other), eager) is not eager:
            if known is not None or id(other) in self._back:
                raise Differs(f"{path} is another object than it is eagerly")
        if known is other:
            return True
        self._pairs[id(eager)], self._back[id(other)] = other, eager
        self._kept += (eager, other)
        return False

    def _within(self, eager: Any, other: Any, path: str) -> None:
        if isinstance(eager, torch.Tensor):
            self._tensors(eager, other, path)
        elif isinstance(eager, BaseException):
            self._errors(eager, other, path)
        elif isinstance(eager, (list, tuple, deque)):
            if len(eager) != len(other):
                raise Differs(f"{path} has {len(other)} entries instead of {len(eager)}")
            for number, (x, y) in enumerate(zip(eager, other)):
                self.compare(x, y, f"{path}[{number}]")
            self._attributes(eager, other, path)
        elif isinstance(eager, dict):
            self._dicts(eager, other, path)
            self._attributes(eager, other, path)
        elif isinstance(eager, (set, frozenset)):
            self.compare(sorted(map(_shown, eager)), sorted(map(_shown, other)), f"{path}, sorted")
        elif isinstance(eager, numpy.ndarray):
            same = (eager.dtype, eager.shape, eager.strides) == (
                other.dtype, other.shape, other.strides)  # fmt: skip
            if not same or not numpy.array_equal(eager, other, equal_nan=eager.dtype.kind == "f"):
                raise Differs(f"{path} is {other!r} instead of {eager!r}")
        elif isinstance(eager, types.FunctionType):
            self._functions(eager, other, path)
        elif isinstance(eager, types.MethodType):
            self.compare(eager.__self__, other.__self__, f"{path}.__self__")
            self.compare(eager.__func__, other.__func__, f"{path}.__func__")
        elif isinstance(eager, type):
            self._classes(eager, other, path)
        else:
            self._objects(eager, other, path)

    def _tensors(self, eager: torch.Tensor, other: torch.Tensor, path: str) -> None:
        if not isinstance(eager, FakeTensor):
            self._attributes(eager, other, path)
            self.compare(eager.grad if eager.is_leaf else None,
                         other.grad if other.is_leaf else None, f"{path}.grad")  # fmt: skip
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            facts, found = _facts(eager), _facts(other)
            if found["grad_fn"] == "_StepBackward" and eager.grad_fn is not None:
                found["grad_fn"] = facts["grad_fn"]  # a compiled derivative, whatever it is of
            for name, value in facts.items():
                if value != found[name]:
                    raise Differs(f"{name} of {path} is {found[name]} instead of {value}")
            if not _has_values(eager):
                return
            self._compare_memory(eager, other, path)
            if not _values_agree(eager, other):
                raise Differs(f"{path} is {_listed(other)} instead of {_listed(eager)}")

    def _compare_memory(self, eager: torch.Tensor, other: torch.Tensor, path: str) -> None:
        x, y = eager.untyped_storage()._cdata, other.untyped_storage()._cdata
        if eager.numel() == 0 or x == y:
            return
        self._kept += (eager.untyped_storage(), other.untyped_storage())
        if self._memory.setdefault(x, y) != y or self._memory_back.setdefault(y, x) != x:
            raise Differs(f"{path} shares memory with other tensors than it does eagerly")

    def _errors(self, eager: BaseException, other: BaseException, path: str) -> None:
        x, y = plain_text(str(eager)), plain_text(str(other))
        if x != y:
            raise Differs(f"{path} says {y!r} instead of {x!r}")
        self.compare(eager.__cause__, other.__cause__, f"the cause of {path}")
        self.compare(eager.__context__, other.__context__, f"the context of {path}")

    def _dicts(self, eager: dict, other: dict, path: str) -> None:
        keys, found = [_shown(key) for key in eager], [_shown(key) for key in other]
        if keys != found:
            raise Differs(f"{path} has the keys {found} instead of {keys}")
        for x, y, name in zip(list(eager.values()), list(other.values()), keys):
            self.compare(x, y, f"{path}[{name}]")

    def _functions(self, eager: Any, other: Any, path: str) -> None:
        x, y = eager.__code__, other.__code__
        if (x.co_name, x.co_firstlineno) != (y.co_name, y.co_firstlineno):
            raise Differs(f"{path} is {y.co_name} instead of {x.co_name}")
        if not (eager.__module__ or "").startswith(_WORLD):  # which may remember what it was asked
            return
        self.compare(eager.__defaults__, other.__defaults__, f"{path}.__defaults__")
        self.compare(eager.__kwdefaults__, other.__kwdefaults__, f"{path}.__kwdefaults__")
        self._attributes(eager, other, path)
        for name, left, right in zip(x.co_freevars, eager.__closure__ or (),
                                     other.__closure__ or ()):  # fmt: skip
            self.compare(_contents(left), _contents(right), f"{path} closure {name}")
        for name in x.co_names:
            left, right = (each.__globals__.get(name) for each in (eager, other))
            if not isinstance(left, types.ModuleType) and not name.startswith("__"):
                self.compare(left, right, f"global {name}")

    def _classes(self, eager: type, other: type, path: str) -> None:
        if not eager.__module__.startswith(_WORLD):
            return
        left = {k: v for k, v in vars(eager).items() if k not in _NO_STATE}
        right = {k: v for k, v in vars(other).items() if k not in _NO_STATE}
        self._dicts(left, right, path)

    def _objects(self, eager: Any, other: Any, path: str) -> None:
        if type(eager).__module__.startswith("weft."):  # which counts its calls
            return
        if isinstance(eager, (random.Random, torch.Generator, numpy.random.Generator)):
            self.compare(_state_of(eager), _state_of(other), f"the state of {path}")
        elif isinstance(eager, weakref.ref):
            self.compare(eager(), other(), f"{path}()")
        elif isinstance(eager, functools.partial):
            for name in ("func", "args", "keywords"):
                self.compare(getattr(eager, name), getattr(other, name), f"{path}.{name}")
        elif isinstance(eager, _COUNTED):
            self.compare(eager.__reduce__(), other.__reduce__(), f"{path}.__reduce__()")
        elif isinstance(eager, property):
            self.compare(eager.fget, other.fget, f"{path}.fget")
        elif isinstance(eager, (staticmethod, classmethod)):
            self.compare(eager.__func__, other.__func__, f"{path}.__func__")
        else:
            self._attributes(eager, other, path)
            for kind in type(eager).__mro__:
                for name in vars(kind).get("__slots__", ()) if kind.__module__.startswith(
                    _WORLD) else ():  # fmt: skip
                    self.compare(getattr(eager, name, None), getattr(other, name, None),
                                 f"{path}.{name}")  # fmt: skip

    def _attributes(self, eager: Any, other: Any, path: str) -> None:
        left, right = (getattr(each, "__dict__", None) for each in (eager, other))
        if isinstance(left, dict) and isinstance(right, dict) and left is not right:
            skipped = (
                "_clear_cache",
                "_hooks",
                "_hooks_with_kwargs",
                "_hooks_always_called",
                "__wrapped__",
            )
            pair = ({k: v for k, v in each.items() if not k.endswith(skipped)}
                    for each in (left, right))  # fmt: skip
            self._dicts(*pair, path)


def _same_type(eager: type, other: type) -> bool:
    return eager is other or (
        plain_text(eager.__module__) == plain_text(other.__module__)
        and eager.__qualname__ == other.__qualname__
    )


def _has_values(tensor: torch.Tensor) -> bool:
    on_cpu = tensor.layout == torch.strided and tensor.device.type == "cpu"
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return on_cpu and not wrapped and not isinstance(tensor, FakeTensor)


def _near(eager: float, other: float) -> bool:
    """Floats that a program gives are of its tensors' values at most."""
    if eager.hex() == other.hex():
        return True
    return abs(eager - other) <= 1e-4 * max(abs(eager), abs(other), 1e-3)


def _facts(tensor: torch.Tensor) -> dict[str, Any]:
    facts = {
        "the shape": tuple(tensor.shape),
        "the dtype": tensor.dtype,
        "the layout": tensor.layout,
        "the device": tensor.device.type,
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "is_inference": tensor.is_inference(),
        "is_conj": tensor.is_conj(),
        "is_neg": tensor.is_neg(),
        "grad_fn": type(tensor.grad_fn).__name__,
    }
    if tensor.layout == torch.strided:
        facts["the strides"] = tensor.stride()
        facts["the offset"] = tensor.storage_offset()
    return facts


def _values_agree(eager: torch.Tensor, other: torch.Tensor) -> bool:
    x, y = eager.detach().resolve_conj(), other.detach().resolve_conj()
    if torch.equal(x, y):
        return True
    tolerance = _TOLERANCES.get(eager.dtype)
    if tolerance is None:
        return False
    finite = x.isfinite()
    scale = float(x[finite].abs().max()) if bool(finite.any()) else 0.0
    atol = tolerance * max(scale, _LEAST_SCALE)
    return torch.allclose(x, y, rtol=tolerance, atol=atol, equal_nan=True)


def _listed(tensor: torch.Tensor) -> str:
    values = tensor.detach().flatten()[:6].tolist()
    return f"{values}{'…' if tensor.numel() > 6 else ''}"


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a {type(value).__name__} of {list(value.shape)}"
    if isinstance(value, type) or not isinstance(value, (*_PLAIN, float, tuple)):
        return plain_text(type(value).__name__ if not isinstance(value, type) else repr(value))
    return plain_text(repr(value))


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound
        return None


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    return generator.bit_generator.state
