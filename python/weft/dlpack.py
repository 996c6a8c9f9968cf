# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of one framework for tensors of another, without a copy: the memory is described by
DLPack, which every framework reads."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def convert(
    fn: Callable[..., Any],
    tensor_type: type | tuple[type, ...],
    to_dlpack: Callable[[Any], Any],
    from_dlpack: Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:
    """`fn` for the tensors of another framework.

    fn: takes arrays that have `__dlpack__`, as `te.build`'s functions do. tensor_type: the other
    framework's; arguments of other types are passed on as they are, and tensors inside lists,
    tuples and dicts are converted, too. to_dlpack: gives a tensor's DLPack capsule, or an object
    with `__dlpack__`. from_dlpack: makes the other framework's tensor from an object with
    `__dlpack__`; without it results are returned as `fn` gives them.
    Memory is shared: what `fn` writes to an argument is seen by its owner, and a converted
    argument is alive at least as long as what `fn` keeps of it.
    Raises: TypeError, if `fn` or a conversion is not callable.
    """
    for name, given in (("fn", fn), ("to_dlpack", to_dlpack), ("from_dlpack", from_dlpack)):
        if not callable(given) and not (name == "from_dlpack" and given is None):
            raise TypeError(f"expected {name} to be callable, found {given!r}")
    types = tensor_type if isinstance(tensor_type, tuple) else (tensor_type,)
    if not all(isinstance(each, type) for each in types):
        raise TypeError(f"expected tensor_type to be a type, found {tensor_type!r}")

    def given_to_fn(value: Any) -> Any:
        if isinstance(value, types):
            made = to_dlpack(value)
            return made if hasattr(made, "__dlpack__") else Capsule(made, value)
        return _mapped(given_to_fn, value)

    def returned(value: Any) -> Any:
        if from_dlpack is not None and hasattr(value, "__dlpack__"):
            return from_dlpack(value)
        return _mapped(returned, value)

    @functools.wraps(fn, assigned=("__name__", "__doc__"), updated=())
    def converted(*args: Any, **kwargs: Any) -> Any:
        result = fn(
            *map(given_to_fn, args), **{name: given_to_fn(each) for name, each in kwargs.items()}
        )
        return returned(result)

    return converted


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Inside Python's own containers, and nothing else."""
    if type(value) in (list, tuple):
        return type(value)(map(change, value))
    if type(value) is dict:
        return {key: change(each) for key, each in value.items()}
    return value


class Capsule:
    """A capsule as an object with `__dlpack__`, which may be asked again as long as nobody has
    consumed it. It keeps the tensor that the capsule is of. Device: the CPU."""

    def __init__(self, capsule: Any, owner: Any) -> None:
        self._capsule, self._owner = capsule, owner

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        if hasattr(self._owner, "__dlpack_device__"):
            return self._owner.__dlpack_device__()
        return 1, 0
