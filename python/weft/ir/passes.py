# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes in Python, and pipelines that mix them with the compiler's own."""

from __future__ import annotations

import hashlib
import tempfile
import time
import types
from collections.abc import Callable, Iterable
from typing import Any

from weft import errors
from weft.ir.module import Module

HIGHEST_LEVEL = 3


class _Broken(Exception):
    """What a pass left breaks a rule."""


class Pass:
    """A function that changes a module, as `weft.ir.module_pass` makes it. Calling it runs it on a
    module, verifies that, and returns what the function does.

    name: in errors and reports. level: the lowest level of optimisation that it is part of.
    """

    def __init__(self, function: Callable[[Module], Any], name: str, level: int) -> None:
        self.function = function
        self.name = name
        self.level = level
        self.__doc__ = function.__doc__

    def __call__(self, module: Module) -> Any:
        """Raises: errors.PassError, if the verifier refuses what it leaves; its own exceptions. The
        module is then as it was, with all handles on it."""
        try:
            return module.attempt(self._run)
        except _Broken as broken:
            path = _kept(module.text(locations=True))
            raise errors.PassError(
                f"pass {self.name!r} left IR that breaks a rule: {broken}\n"
                f"the IR before it: {path}",
                self.name,
                path,
            ) from None

    def _run(self, module: Module) -> Any:
        result = self.function(module)
        try:
            module.verify()
        except errors.VerificationError as error:
            raise _Broken(str(error)) from None
        return result

    def fingerprint(self) -> str:
        """A digest of the name and the code, with the functions and values that the code names."""
        digest = hashlib.blake2b(self.name.encode(), digest_size=16)
        digest.update(repr(_code_of(self.function, set())).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"<weft.ir.module_pass {self.name}, level {self.level}>"


def module_pass(
    function: Callable[[Module], Any] | None = None, *, name: str | None = None, level: int = 0
) -> Any:
    """A decorator: the function, which changes the module it is given, is a pass.

        @weft.ir.module_pass(name="use-fma", level=2)
        def use_fma(module):
            fma.apply(module)

    name: by default the function's, with hyphens. level: it is run at this level of optimisation
    and above (0 to 3).
    Raises: errors.IRError for a level that there is not.
    """
    if level not in range(HIGHEST_LEVEL + 1):
        raise errors.IRError(f"expected a level from 0 to {HIGHEST_LEVEL}, found {level!r}")
    if function is None:
        return lambda decorated: module_pass(decorated, name=name, level=level)
    return Pass(function, name or function.__name__.replace("_", "-"), level)


class CompilerPass(Pass):
    """A pass of the compiler's, by its name as weft-opt has it, or several with commas between."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(lambda module: module.run_passes(pipeline), pipeline, 0)


class Pipeline:
    """Passes in order: those of `module_pass`, and the compiler's by name.

        weft.ir.Pipeline([use_fma, "canonicalize", "cse"])(module)

    A pass of a higher level than `level` is left out. seconds: of each pass in the last run.
    """

    def __init__(self, passes: Iterable[Pass | str], *, level: int = HIGHEST_LEVEL) -> None:
        self.passes = [as_pass(each) for each in passes]
        self.level = level
        self.seconds: list[tuple[str, float]] = []

    def __call__(self, module: Module) -> Module:
        """Runs them on the module, in place, and returns it. After an error the module is as the
        pass that failed found it.

        Raises: errors.PassError; errors.IRError for unknown passes; a pass's own exceptions.
        """
        self.seconds = []
        for each in self.passes:
            if each.level > self.level:
                continue
            start = time.perf_counter()
            each(module)
            self.seconds.append((each.name, time.perf_counter() - start))
        return module

    def __repr__(self) -> str:
        return f"weft.ir.Pipeline({[each.name for each in self.passes]})"


def as_pass(given: Any) -> Pass:
    """Raises: TypeError for what is no pass."""
    if isinstance(given, Pass):
        return given
    if isinstance(given, str):
        return CompilerPass(given)
    raise TypeError(f"expected a weft.ir.module_pass or the name of a pass, found {given!r}")


def _kept(text: str) -> str:
    with tempfile.NamedTemporaryFile(
        "w", prefix="weft-before-", suffix=".mlir", delete=False
    ) as file:
        file.write(text)
    return file.name


def _code_of(value: Any, seen: set[int]) -> Any:
    """What a function does, as far as it can be told from its code and what that names."""
    if id(value) in seen:
        return "..."
    if isinstance(value, types.FunctionType):
        seen.add(id(value))
        code = value.__code__
        named = [value.__globals__.get(name) for name in code.co_names]
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        inner = [_code_of(each, seen) for each in (*named, *held, *(value.__defaults__ or ()))]
        return ["function", code.co_code, _constants(code), code.co_names, inner]
    if hasattr(value, "_replace") and hasattr(value, "_where"):  # a pattern
        seen.add(id(value))
        return [_code_of(each, seen) for each in (value.match, value._replace, value._where)]
    if isinstance(value, (str, int, float, bool, bytes, type(None))):
        return value
    if isinstance(value, (tuple, list)):
        return [_code_of(each, seen) for each in value]
    if isinstance(value, Pass):
        return [value.name, _code_of(value.function, seen)]
    return getattr(value, "__qualname__", type(value).__qualname__)


def _constants(code: types.CodeType) -> list[Any]:
    return [
        [each.co_code, _constants(each), each.co_names]
        if isinstance(each, types.CodeType)
        else repr(each)
        for each in code.co_consts
    ]
