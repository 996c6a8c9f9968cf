# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the result of a replay with the call's: structure, types, metadata, and every bit."""

from __future__ import annotations

import itertools
import math
import types
from collections import defaultdict, deque
from collections.abc import ItemsView, KeysView, ValuesView
from functools import partial
from typing import Any

import numpy
import torch

# The iterators that tell what they were made of.
_ITERATORS: tuple[type, ...] = (
    *(type(iter([])), type(iter(())), type(iter(range(0)))),
    *(zip, map, enumerate, itertools.cycle),
)


def difference(
    eager: Any, replayed: Any, path: str = "the result", tolerance: float | None = None
) -> str | None:
    """Where the two differ, or None. tolerance: for compiled code, how far rounding may change a
    value, relative to the largest value of its tensor."""
    if eager is replayed:
        return None
    if type(eager) is not type(replayed):
        return f"{path} is a {type(replayed).__name__} instead of a {type(eager).__name__}"
    if isinstance(eager, torch.Tensor):
        return _tensors(eager, replayed, path, tolerance)
    if isinstance(eager, (numpy.ndarray, numpy.generic)):
        return _arrays(eager, replayed, path)
    if isinstance(eager, (list, tuple)):
        if len(eager) != len(replayed):
            return f"{path} has {len(replayed)} items instead of {len(eager)}"
        pairs = zip(eager, replayed)
        found = (difference(x, y, f"{path}[{i}]", tolerance) for i, (x, y) in enumerate(pairs))
        return next((each for each in found if each is not None), None)
    if isinstance(eager, deque):
        if eager.maxlen != replayed.maxlen:
            return f"the most that {path} holds is {replayed.maxlen} instead of {eager.maxlen}"
        return difference(list(eager), list(replayed), path, tolerance)
    if isinstance(eager, (set, frozenset)):
        return _sets(eager, replayed, path, tolerance)
    if isinstance(eager, dict):
        found = _sets(eager.keys(), replayed.keys(), f"the keys of {path}", tolerance)
        if found is None and isinstance(eager, defaultdict):
            mine, others = eager.default_factory, replayed.default_factory
            found = difference(mine, others, f"{path}.default_factory", tolerance)
        return found or difference(
            list(eager.values()), list(replayed.values()), f"{path}.values()", tolerance
        )
    if isinstance(eager, (KeysView, ValuesView, ItemsView)):
        return difference(list(eager), list(replayed), path, tolerance)
    if isinstance(eager, _ITERATORS):
        mine, others = eager.__reduce__()[1:], replayed.__reduce__()[1:]
        return difference(mine, others, path, tolerance)
    if isinstance(eager, partial):
        mine, others = ((each.func, each.args, each.keywords) for each in (eager, replayed))
        return difference(mine, others, path, tolerance)
    if isinstance(eager, types.FunctionType):
        return difference(_parts(eager), _parts(replayed), path, tolerance)
    if isinstance(eager, types.GeneratorType) and eager.gi_frame and replayed.gi_frame:
        mine, others = ((each.gi_code, each.gi_frame.f_locals) for each in (eager, replayed))
        return difference(mine, others, path, tolerance)
    if isinstance(eager, types.SimpleNamespace):
        return difference(vars(eager), vars(replayed), f"vars({path})", tolerance)
    if isinstance(eager, BaseException):
        found = difference(eager.args, replayed.args, f"{path}.args", tolerance)
        return found or difference(vars(eager), vars(replayed), f"vars({path})", tolerance)
    if type(eager).__new__ is object.__new__:
        mine, others = _attributes(eager), _attributes(replayed)
        if mine or others or hasattr(eager, "__dict__"):
            return difference(mine, others, f"vars({path})", tolerance)
    if isinstance(eager, float):
        same = eager.hex() == replayed.hex()
        if tolerance is not None and not same:
            same = math.isclose(eager, replayed, rel_tol=tolerance, abs_tol=tolerance)
    else:
        same = eager == replayed
    return None if same else f"{path} is {replayed!r} instead of {eager!r}"


def _attributes(instance: Any) -> dict[Any, Any]:
    """What the instance has in its `__dict__` and in slots, these by class and name."""
    found = dict(getattr(instance, "__dict__", {}))
    for kind in type(instance).__mro__:
        for name, member in vars(kind).items():
            if isinstance(member, types.MemberDescriptorType):
                try:
                    found[kind, name] = member.__get__(instance)
                except AttributeError:  # it is not set
                    continue
    return found


def _parts(function: types.FunctionType) -> tuple:
    """The function's code, its defaults, and the contents of its cells; () for an empty cell."""
    contents = []
    for cell in function.__closure__ or ():
        try:
            contents.append((cell.cell_contents,))
        except ValueError:
            contents.append(())
    return function.__code__, function.__defaults__, contents


def _sets(eager: Any, replayed: Any, path: str, tolerance: float | None) -> str | None:
    """Compares sets, or keys of dicts, in order. Tensors in a set have no order, as it knows them
    by address."""
    if len(eager) != len(replayed):
        return f"{path} has {len(replayed)} items instead of {len(eager)}"
    left = list(replayed)
    if not isinstance(eager, KeysView) and any(isinstance(each, torch.Tensor) for each in eager):
        for item in eager:
            found = (difference(item, each, path, tolerance) is None for each in left)
            place = next((place for place, same in enumerate(found) if same), None)
            if place is None:
                return f"{path} has no such item as {item!r}"
            del left[place]
        return None
    return difference(list(eager), left, path, tolerance)


def _tensors(
    eager: torch.Tensor, replayed: torch.Tensor, path: str, tolerance: float | None
) -> str | None:
    for name in ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf"):
        if getattr(eager, name) != getattr(replayed, name):
            return (
                f"{name} of {path} is {getattr(replayed, name)} instead of {getattr(eager, name)}"
            )
    if eager.stride() != replayed.stride() or eager.storage_offset() != replayed.storage_offset():
        return f"{path} lies in memory otherwise"
    if tolerance is not None:
        return None if _near(eager, replayed, tolerance) else f"the values of {path} differ"
    if type(eager.grad_fn) is not type(replayed.grad_fn):
        return f"{path} has another gradient function"
    with torch.no_grad():
        x, y = (_bits(each) for each in (eager, replayed))
        return None if torch.equal(x, y) else f"the values of {path} differ"


def _near(eager: torch.Tensor, other: torch.Tensor, tolerance: float) -> bool:
    if tolerance == math.inf:
        return True
    with torch.no_grad():
        x, y = eager.detach(), other.detach()
        if not (x.is_floating_point() or x.is_complex()):
            return torch.equal(x, y)
        finite = x.isfinite()
        scale = float(x[finite].abs().max()) if bool(finite.any()) else 0.0
        return torch.allclose(y, x, tolerance, tolerance * scale, equal_nan=True)


def _arrays(eager: Any, replayed: Any, path: str) -> str | None:
    """Compares arrays or scalars of NumPy."""
    for name in ("dtype", "shape", "strides"):
        if getattr(eager, name) != getattr(replayed, name):
            return f"{name} of {path} differ"
    same = eager.tobytes() == replayed.tobytes()
    return None if same else f"the values of {path} differ"


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's bits, which compare equal even for NaN."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    floating = tensor.is_floating_point()
    return tensor.contiguous().view(sizes[tensor.element_size()]) if floating else tensor
