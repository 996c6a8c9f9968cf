# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of a module."""

from __future__ import annotations

from typing import Any

from weft.ir.elements import to_python
from weft.ir.types import OtherType, TensorType, type_of
from weft.ir.values import Block, Operation, Value


class Function(Operation):
    """A function: an op that has a name, parameters and a body.

    name: as it is called. params: its parameters, each with the user's name for it.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        return dict(self._module._session.attributes(self._handle))["sym_name"]

    @property
    def params(self) -> list[Value]:
        return self.body.params

    @property
    def body(self) -> Block:
        """Its only block.

        Raises: IndexError, if it is a declaration.
        """
        return self.blocks[0]

    @property
    def param_types(self) -> list[TensorType | OtherType]:
        return [type_of(each) for each in self._module._session.signature(self._handle)[0]]

    @property
    def result_types(self) -> list[TensorType | OtherType]:
        return [type_of(each) for each in self._module._session.signature(self._handle)[1]]

    @property
    def returns(self) -> list[Value]:
        """The values that it returns."""
        return self.body[-1].operands

    @property
    def is_private(self) -> bool:
        return self.attributes.get("sym_visibility") == "private"

    @property
    def is_primitive(self) -> bool:
        """Whether passes are to take it as a whole: it has the attribute `weft.primitive`."""
        return "weft.primitive" in self.attributes

    @property
    def is_loops(self) -> bool:
        """Whether it is a kernel whose body is no graph, as `weft.ir.lower_ops` makes them."""
        return "weft.kernel" in self.attributes and not any(
            op.full_name.startswith("weft.") for op in self.body
        )

    @property
    def callers(self) -> list[Operation]:
        """The calls of it, in order."""
        return [
            op
            for function in self._module.functions
            for op in function.body
            if op.full_name == "func.call" and op.attributes["callee"] == self.name
        ]

    def loops(self) -> str:
        """A kernel at the stage `linalg`, or a function that `weft.ir.lower_ops` made, for people:
        buffers, loops, what is read and written, what never overlaps.

        Raises: errors.IRError, if it has no loops of linalg.
        """
        from weft.ir.loop_text import loops

        return loops(self)

    def param_attributes(self, number: int) -> dict[str, Any]:
        """The attributes of a parameter: `weft.name`, `weft.kind` (input, weight, buffer or
        constant), …"""
        attributes = self._module._session.parameter_attributes(self._handle, number)
        return {name: to_python(value) for name, value in attributes}

    def __repr__(self) -> str:
        if not self._module._session.is_alive(self._handle):
            return "<weft.ir.Function, stale>"
        params = ", ".join(f"{value.name or '_'}: {value.type}" for value in self.params)
        results = ", ".join(map(str, self.result_types))
        return f"<weft.ir.Function {self.name}({params}) -> ({results})>"
