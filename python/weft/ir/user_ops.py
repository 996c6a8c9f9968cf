# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that users add: functions of values, for any types that their bodies take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import errors
from weft.ir import emission
from weft.ir.building import call
from weft.ir.functions import Function
from weft.ir.loop_emission import emit_function
from weft.ir.loops import Tensor
from weft.ir.lower_ops import add_function
from weft.ir.module import Module
from weft.ir.rewriting import Rewriter
from weft.ir.values import Value


class UserOp:
    """What `op` makes: called where ops are being made, it emits a call of a function with its
    body, of which there is one for each kind of call."""

    def __init__(self, body: Callable[..., Any], name: str, by_loops: bool) -> None:
        self._body = body
        self.name = name
        self._by_loops = by_loops
        self.__doc__ = body.__doc__

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        """Raises: errors.IRError for what is no operand, and where no ops are being made; what the
        body raises."""
        module = emission.insertion_point().module
        values = [self._value(each) for each in operands]
        types = tuple(str(value.type) for value in values)
        key = (self, types, repr(sorted(attributes.items())))
        made = module._user_ops
        if made.get(key) not in module:
            made[key] = self._function(module, values, attributes).name
        return call(made[key], *values)

    def _value(self, operand: Any) -> Value:
        if isinstance(operand, Value):
            return operand
        try:
            return emission.constant(operand)
        except TypeError:
            raise errors.IRError(f"{self.name}: expected a value, found {operand!r}") from None

    def _function(
        self, module: Module, values: list[Value], attributes: dict[str, Any]
    ) -> Function:
        rewriter = Rewriter(module)
        if not self._by_loops:
            return rewriter.add_function(
                self.name,
                [value.type for value in values],
                lambda *params: self._body(*params, **attributes),
                attributes={"weft.primitive": True},
            )
        tensors = [Tensor(value.shape, value.type.dtype) for value in values]
        text = emit_function(lambda _, *params: self._body(*params, **attributes), None, tensors)
        return add_function(module, text, rewriter.fresh_name(self.name))

    def __repr__(self) -> str:
        return f"<weft.ir.op {self.name}>"


def op(
    body: Callable[..., Any] | None = None, *, name: str | None = None, loops: bool = False
) -> Any:
    """A decorator: the function is a new op.

        @weft.ir.op
        def swish(x, *, beta=1.0):
            return x * ops.sigmoid(x * beta)

        @weft.ir.op(loops=True)
        def shifted(x):
            return loops.compute((x.shape[0] - 1,), lambda i: x[i] - x[i + 1])

    Positional arguments are operands, keywords are attributes. The body makes ops of values, or,
    with `loops`, describes tensors of `weft.ir.loops`. In a module the op is a function of its
    name, with a number for further types, that fusion takes as a unit.
    """
    if body is None:
        return lambda decorated: op(decorated, name=name, loops=loops)
    return UserOp(body, name or body.__name__, loops)
