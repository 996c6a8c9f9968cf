# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules made by hand: `weft.ir.Builder`, and `@weft.ir.function` on a Python function."""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from weft import errors
from weft.dialect.making import making
from weft.ir import emission
from weft.ir.emission import InsertionPoint
from weft.ir.functions import Function
from weft.ir.module import Module
from weft.ir.types import OtherType, TensorType, written
from weft.ir.values import Operation, Value


class Builder:
    """Makes a module function by function:

        builder = weft.ir.Builder()
        with builder.function("main", x=weft.ir.tensor(3, 4), y=weft.ir.tensor(3, 4)) as (x, y):
            builder.returns(ops.add(ops.mul(x, y), y))
        module = builder.module

    module: what has been made so far; of a function given as `into`, the one that it adds to.
    """

    def __init__(self, into: Module | None = None) -> None:
        self.module = Module() if into is None else into
        self._open: list[int] = []

    @contextlib.contextmanager
    def function(
        self, name: str, /, *types: Any, private: bool = False, **params: Any
    ) -> Iterator[list[Value]]:
        """In the body of the `with` statement ops are emitted into the new function, whose
        parameters it gives. types, params: of the parameters, without and with names.

        Raises: errors.IRError, if the name is taken, or nothing was returned; the function is then
        gone, as after any exception in the body.
        """
        session = self.module._session
        names = [f"arg{number}" for number in range(len(types))] + list(params)
        handle = session.create_function(
            name,
            [written(each) for each in (*types, *params.values())],
            names,
            private,
            emission.caller(),
        )
        function = Function(self.module, handle)
        (block,) = session.blocks(handle)
        self._open.append(handle)
        try:
            with making(InsertionPoint(self.module, block)):
                yield function.params
            if not (len(function.body) and function.body[-1].full_name == "func.return"):
                raise errors.IRError(f"expected function {name!r} to return something")
        except BaseException:
            session.erase_op(handle)
            raise
        finally:
            self._open.pop()

    def returns(self, *values: Any) -> None:
        """Ends the function that is being made."""
        if not self._open:
            raise errors.IRError("expected a function that is being made")
        self.module._session.set_return(
            self._open[-1], [emission.reference(value) for value in values]
        )

    def emit(self, name: str, /, *operands: Any, result_type: Any = None, **attributes: Any) -> Any:
        """The op `name`, with or without the dialect, of `operands`: as the function of
        `weft.ir.ops` for ops of the graph; of other dialects with the types of the results."""
        return emit(name, *operands, result_type=result_type, **attributes)

    def call(self, function: Function | str, *operands: Any) -> Any:
        """A call of a function of the module: its result, or a tuple of several."""
        return call(function, *operands)


def emit(name: str, /, *operands: Any, result_type: Any = None, **attributes: Any) -> Any:
    """Makes the op `name` where ops are being made; see `Builder.emit`."""
    full = name if "." in name else f"weft.{name}"
    data = [(key, emission.data_for(full, key, value)) for key, value in attributes.items()]
    definition = emission.DEFINITIONS.get(full)
    groups: list[list[Any]] = [[each] for each in operands]
    if definition is not None:
        groups = _grouped(full, definition.operands, operands)
    types = emission.written_types(result_type, groups)
    return emission.create(
        full, [[emission.reference(each) for each in group] for group in groups], data, types
    )


def _grouped(op: str, names: Sequence[str], operands: Sequence[Any]) -> list[list[Any]]:
    """One operand for each name; None leaves an optional one out, a sequence is a variadic one."""
    if len(operands) > len(names):
        raise errors.IRError(f"{op}: expected {len(names)} operands, found {len(operands)}")
    given = [*operands, *[None] * (len(names) - len(operands))]
    groups = []
    for name, operand in zip(names, given, strict=True):
        if operand is None and not name.endswith("?"):
            raise errors.IRError(f"{op}: expected an operand {name.rstrip('*')!r}")
        several = name.endswith("*") and isinstance(operand, (list, tuple))
        groups.append([] if operand is None else list(operand) if several else [operand])
    return groups


def call(function: Function | str, *operands: Any) -> Any:
    """A call where ops are being made: its result, a tuple of several, or the op without any.

    Raises: KeyError, if the module has no such function; errors.VerificationError.
    """
    module = emission.insertion_point().module
    callee = module[function] if isinstance(function, str) else function
    types = [str(each) for each in callee.result_types]
    name = emission.Syntax(f"@{callee.name}")
    operand_refs = [emission.reference(each) for each in operands]
    return emission.create("func.call", [operand_refs], [("callee", name)], types)


class TracedFunction:
    """What `@weft.ir.function` makes of a Python function.

    Where ops are being made, calling it emits a call of the function, which becomes part of that
    module. module: one with this function alone, and those that it calls.
    """

    def __init__(
        self, function: Callable[..., Any], name: str, private: bool, names: Mapping[str, Any]
    ) -> None:
        self._function = function
        self.name = name
        self._private = private
        self.__doc__ = function.__doc__
        self.types = _annotations(function, names)

    @property
    def module(self) -> Module:
        """Newly made, with each use."""
        builder = Builder()
        self.add_to(builder.module)
        return builder.module

    def add_to(self, module: Module) -> Function:
        """Makes it a function of `module`, unless it is there."""
        if self.name not in module:
            builder = Builder(module)
            with builder.function(self.name, private=self._private, **self.types) as params:
                result = self._function(*params)
                several = isinstance(result, (tuple, list))
                builder.returns(*(result if several else [result]))
        return module[self.name]

    def __call__(self, *operands: Any) -> Any:
        module = emission.insertion_point().module
        return call(self.add_to(module), *operands)

    def __repr__(self) -> str:
        params = ", ".join(f"{name}: {type_}" for name, type_ in self.types.items())
        return f"<weft.ir.function {self.name}({params})>"


def function(
    target: Callable[..., Any] | None = None, *, name: str | None = None, private: bool = False
) -> Any:
    """A decorator: the Python function, run once on values of the types it is annotated with,
    becomes a function of the IR.

        @weft.ir.function
        def main(x: weft.ir.tensor(3, 4), y: weft.ir.tensor(3, 4)):
            return ops.add(ops.mul(x, y), y)

        main.module["main"]

    Raises: errors.IRError, if a parameter has no tensor type.
    """
    if target is None:
        return lambda decorated: function(decorated, name=name, private=private)
    frame = emission.calling_frame()
    local_names = {} if frame is None else frame.f_locals
    return TracedFunction(target, name or target.__name__, private, local_names)


def _annotations(target: Callable[..., Any], names: Mapping[str, Any]) -> dict[str, TensorType]:
    """names: of the place that the function is defined at, which the annotations are of in a
    module with `from __future__ import annotations`."""
    hints = typing.get_type_hints(target, localns=dict(names))
    types = {}
    for name in inspect.signature(target).parameters:
        if not isinstance(hints.get(name), (TensorType, OtherType)):
            raise errors.IRError(
                f"{target.__name__}: expected parameter {name!r} to have a type such as "
                f"weft.ir.tensor(3, 4), found {hints.get(name)!r}"
            )
        types[name] = hints[name]
    return types


def bind_parameters(
    module: Module, values: Mapping[str | int, Any] | Sequence[Any], function: str = "main"
) -> int:
    """Makes constants of parameters, which then are none any more. Returns how many.

    values: arrays or tensors by the parameters' names or numbers; a sequence holds those of the
    last parameters, as `model.parameters()` does of a captured model.
    Raises: errors.IRError for an unknown parameter, or a value of another type.
    """
    target = module[function]
    params, names = target.params, [value.name for value in target.params]
    if not isinstance(values, Mapping):
        values = dict(enumerate(values, start=len(params) - len(values)))
    numbers = {}
    for key, value in values.items():
        number = names.index(key) if key in names else key
        if not isinstance(number, int) or not 0 <= number < len(params):
            raise errors.IRError(f"expected a parameter among {names}, found {key!r}")
        numbers[number] = value
    with making(_start(target)):
        for number, value in numbers.items():
            made = emission.constant(value)
            if made.type != params[number].type:
                raise errors.IRError(
                    f"parameter {names[number]!r}: expected {params[number].type}, found "
                    f"{made.type}"
                )
            module._session.replace_uses(params[number]._ref, made._ref)
    for number in sorted(numbers, reverse=True):
        module._session.erase_parameter(target._handle, number)
        # Those of a captured model come last.
        place = number - len(params) + len(module.tensors)
        if function == "main" and place >= 0:
            del module.tensors[place]
    return len(numbers)


def _start(target: Function) -> InsertionPoint:
    first: Operation = target.body[0]
    return InsertionPoint(target.module, target.body._handle, first._handle)
