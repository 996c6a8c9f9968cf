# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`weft.warm`: compiles programs ahead of the calls that need them."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from weft import errors
from weft.capture.signature import Declined
from weft.compiled.background import Job
from weft.compiled.module import callable_of
from weft.compiled.requests import Found
from weft.frontend.dtypes import DTYPES

_DTYPES = {**DTYPES, **{str(dtype).removeprefix("torch."): dtype for dtype in DTYPES.values()}}
_ANNOTATED = {
    "LongTensor": torch.int64,
    "IntTensor": torch.int32,
    "BoolTensor": torch.bool,
    "DoubleTensor": torch.float64,
}


def warm(compiled: Any, shapes: Iterable[Any], *, processes: int = 1) -> list[str | None]:
    """Compiles the programs of calls that are expected, and keeps them in the cache: the first such
    call runs one, in this process or in another.

    The calls themselves are made only in child processes, where each program is compared with
    PyTorch. Modes are those of the caller, such as `torch.no_grad()`.

    compiled: what weft.compile returned.
    shapes: one description for each call: of its only argument, or a tuple of descriptions of its
    arguments, or a dict of them by name. A tensor stands for itself. A tuple of sizes, such as (1,
    128), or with a dtype, ((1, 128), torch.int64), stands for a tensor with small values; without a
    dtype it has the one with which the parameter is annotated, or the default dtype. Anything else
    stands for itself.
    processes: how many compile at the same time.
    Returns: for each call the reason why PyTorch will run it, or None if a program is ready.
    Raises: TypeError, if `compiled` is something else; errors.ConfigError for fewer than one
    process or an unknown dtype.
    """
    found = callable_of(compiled)
    if found is None:
        raise TypeError(f"expected what weft.compile returned, found {type(compiled).__qualname__}")
    if processes < 1:
        raise errors.ConfigError(f"expected processes of at least 1, found {processes}")
    face, jobs = found.face, []
    with ThreadPoolExecutor(processes, thread_name_prefix="weft-warm") as pool:
        waiting: list[Any] = []
        for each in shapes:
            args, kwargs = _call_of(each, face.original)
            try:
                request = face.programs.look_up(args, kwargs)
            except Declined as why:
                waiting.append(why.reason)
                continue
            if isinstance(request, Found):
                waiting.append(request.specialized.reason)
                continue
            same = [future for job, future in jobs if job.answers(request)]
            if not same:
                job = Job(weakref.ref(face), request)
                same = [pool.submit(job.run, lambda: False, niceness=0)]
                jobs.append((job, same[0]))
            waiting.append(same[0])
        return [each.result() if isinstance(each, Future) else each for each in waiting]


def _call_of(description: Any, target: Any) -> tuple[tuple, dict[str, Any]]:
    annotations = _annotations(target)
    values = torch.Generator().manual_seed(0)
    if isinstance(description, dict):
        kwargs = {
            name: _argument(each, annotations.get(name, ""), values)
            for name, each in description.items()
        }
        return (), kwargs
    if _is_single(description):
        description = (description,)
    ordered = [*annotations.values(), *[""] * len(description)]
    return tuple(_argument(*each, values) for each in zip(description, ordered)), {}


def _is_single(description: Any) -> bool:
    """Whether the description is of one argument."""
    return not isinstance(description, (tuple, list)) or _is_shape(description) or (
        _is_typed(description)
    )  # fmt: skip


def _is_shape(value: Any) -> bool:
    return isinstance(value, torch.Size) or (
        isinstance(value, (tuple, list))
        and bool(value)
        and all(type(each) is int for each in value)
    )


def _is_typed(value: Any) -> bool:
    return (
        isinstance(value, (tuple, list))
        and len(value) == 2
        and isinstance(value[1], (str, torch.dtype))
        and (_is_shape(value[0]) or value[0] == ())
    )


def _argument(description: Any, annotation: str, values: torch.Generator) -> Any:
    if _is_shape(description):
        named = [dtype for name, dtype in _ANNOTATED.items() if name in annotation]
        return _tensor(description, named[0] if named else torch.get_default_dtype(), values)
    if _is_typed(description):
        shape, dtype = description
        if isinstance(dtype, str):
            if dtype not in _DTYPES:
                raise errors.ConfigError(f"expected a dtype, found {dtype!r}")
            dtype = _DTYPES[dtype]
        return _tensor(shape, dtype, values)
    return description


def _tensor(shape: Any, dtype: torch.dtype, values: torch.Generator) -> torch.Tensor:
    """A tensor. Integers are 0 or 1, so that they are valid indices and masks."""
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(tuple(shape), generator=values).to(dtype)
    return torch.randint(0, 2, tuple(shape), generator=values).to(dtype)


def _annotations(target: Any) -> dict[str, str]:
    """The annotations of a call's parameters, in order, as text."""
    function = target.forward if isinstance(target, torch.nn.Module) else target
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # it has no signature
        return {}
    return {name: str(each.annotation) for name, each in parameters.items()}
