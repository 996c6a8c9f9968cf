# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of libraries through which the observer finds the functions that they call."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any


def disabled(function: Any) -> Any:
    """The function that torch._disable_dynamo has wrapped as `function`. What the first call of
    `function` would store on it is stored now."""
    names = function.__code__.co_freevars
    cells = dict(zip(names, function.__closure__))
    inner = cells["fn"].cell_contents
    if getattr(inner, "__dynamo_disable", None) is None:
        import torch._dynamo

        recursive = cells["recursive"].cell_contents
        inner.__dynamo_disable = torch._dynamo.disable(inner, recursive, wrapping=False)
    return inner


def dispatch_code() -> types.CodeType:
    """The code by which each functools.singledispatch finds the implementation for a class."""
    codes = functools.singledispatch.__code__.co_consts
    return next(
        each for each in codes if isinstance(each, types.CodeType) and each.co_name == "dispatch"
    )


def in_python(function: Callable[..., Any]) -> types.FunctionType:
    """A function in Python that does what `function` does, which the observer can watch where C
    calls it."""
    if isinstance(function, operator.attrgetter):
        _, names = function.__reduce__()
        return _made(_attributes, names=tuple(tuple(each.split(".")) for each in names))
    if isinstance(function, operator.methodcaller):
        maker, given = function.__reduce__()
        if isinstance(maker, functools.partial):  # it has arguments by name
            name, given, named = maker.args[0], given, maker.keywords
        else:
            (name, *given), named = given, {}
        return _made(_method, name=name, given=tuple(given), named=named)
    return _made(_called, function=function)


def tested(function: Callable[..., Any] | None) -> types.FunctionType:
    """A function in Python whose results are the truth of those of `function`, as C asks for it;
    without a function, of its argument."""
    return _made(_tested, function=function)


def folded(function: Callable[..., Any]) -> Callable[..., Any]:
    """sum, any or all as a loop in Python."""
    return _FOLDS[function]


def _made(function: Callable[..., Any], /, **defaults: Any) -> types.FunctionType:
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    made.__kwdefaults__ = defaults
    return made


def _called(*arguments: Any, function: Any) -> Any:
    return function(*arguments)


def _tested(argument: Any, *, function: Any) -> bool:
    return not not (argument if function is None else function(argument))


def _sum(items: Any, /, start: Any = 0) -> Any:
    total = start
    for each in items:
        total = total + each
    return total


def _all(items: Any, /) -> bool:
    for each in items:
        if not each:
            return False
    return True


def _any(items: Any, /) -> bool:
    for each in items:
        if each:
            return True
    return False


_FOLDS: dict[Any, Callable[..., Any]] = {sum: _sum, all: _all, any: _any}


def _attributes(of: Any, /, *, names: tuple[tuple[str, ...], ...]) -> Any:
    found = []
    for each in names:
        value = of
        for name in each:
            value = getattr(value, name)
        found.append(value)
    return tuple(found) if len(found) > 1 else found[0]


def _method(of: Any, /, *, name: str, given: tuple, named: dict[str, Any]) -> Any:
    return getattr(of, name)(*given, **named)
