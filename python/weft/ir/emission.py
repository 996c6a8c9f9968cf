# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How ops come into being: where they are inserted, and from what.

`dialect.making.making(point)` is how the functions of `weft.ir.ops` are told where.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from weft import errors
from weft._graph_definitions import DEFINITIONS
from weft.dialect.definitions import Attribute, Definition
from weft.dialect.making import StandIn, emit, maker
from weft.ir.elements import Syntax, from_python, to_elements
from weft.ir.types import TensorType, written

if TYPE_CHECKING:
    from weft.ir.module import Module

_NOT_THE_USERS = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    contextlib.__file__,
)


class InsertionPoint(NamedTuple):
    """Ahead of the op `before`, or at the end of `block`: handles of the module's session."""

    module: Module
    block: int
    before: int = 0

    def make(
        self,
        definition: Definition,
        operands: Sequence[Sequence[Any]],
        attributes: Sequence[Any],
        result_type: Any,
    ) -> Any:
        """Makes the op here. operands: arrays become constants. result_type: of the result, or a
        sequence of types; a shape stands for the type of that shape with the element type of the
        first operand.

        Raises: errors.VerificationError, with the definition's constraints; errors.IRError.
        """
        groups = [[reference(each) for each in group] for group in operands]
        given = zip(definition.attributes, attributes, strict=True)
        data = [(a.name, attribute_data(definition.name, a, v)) for a, v in given if v is not None]
        return create(definition.name, groups, data, written_types(result_type, operands))


def insertion_point() -> InsertionPoint:
    """Raises: errors.IRError outside all places where ops of a module can be made."""
    point = maker()
    if not isinstance(point, InsertionPoint):
        raise errors.IRError(f"expected a place in a module, found {point!r}")
    return point


class Arithmetic:
    """What values and the variables of patterns have in common: operators that emit ops. A plain
    number beside a value is a constant of its type."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _binary("weft.add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary("weft.add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _binary("weft.sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary("weft.sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _binary("weft.mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary("weft.mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _binary("weft.div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary("weft.div", other, self)

    def __neg__(self) -> Any:
        return emit(DEFINITIONS["weft.neg"], [[self]], [])

    def __matmul__(self, other: Any) -> Any:
        """dot_general of the last dim of one and the last but one of the other; dims ahead of
        those are batch dims, of which both have the same."""
        if isinstance(other, (np.ndarray, torch.Tensor)):
            other = constant(other)
        if self.type.rank < 2 or other.type.rank != self.type.rank:
            raise errors.IRError(
                f"expected matrices of one rank, found {self.type} and {other.type}"
            )
        batch = list(range(self.type.rank - 2))
        dims = [batch, batch, [self.type.rank - 1], [self.type.rank - 2]]
        return emit(DEFINITIONS["weft.dot_general"], [[self], [other]], dims)


class Symbolic(Arithmetic, StandIn):
    """A part of a pattern, with the operators of values."""

    __slots__ = ()


def _binary(name: str, lhs: Any, rhs: Any) -> Any:
    lhs, rhs = _beside(lhs, rhs), _beside(rhs, lhs)
    return NotImplemented if lhs is None or rhs is None else emit(DEFINITIONS[name], [[lhs], [rhs]])


def _beside(operand: Any, other: Any) -> Any:
    """A plain number as a tensor of the other operand's type; None for what is no operand."""
    if isinstance(operand, (Arithmetic, np.ndarray, torch.Tensor)):
        return operand
    if not isinstance(operand, (bool, int, float, np.generic)):
        return None
    if isinstance(other, Symbolic):
        return float(operand)
    return torch.full(other.type.shape, operand, dtype=other.type.torch_dtype)


def create(
    name: str,
    operands: list[list[tuple[int, int]]],
    attributes: list[tuple[str, Any]],
    types: list[str],
) -> Any:
    """`emit` of data that the session takes."""
    from weft.ir.values import Operation

    point = insertion_point()
    session = point.module._session
    try:
        handle = session.create_op(
            name, operands, attributes, types, caller(), point.block, point.before
        )
    except errors.VerificationError as error:
        raise explained(error, name) from None
    op = Operation(point.module, handle)
    results = tuple(op.results)
    return (results[0] if len(results) == 1 else results) if results else op


def explained(error: errors.VerificationError, name: str) -> errors.VerificationError:
    """The error with what the op's definition demands."""
    definition = DEFINITIONS.get(name)
    if definition is None or not definition.constraints:
        return error
    rules = "".join(f"\n  {rule}: {text}" for rule, text in definition.constraints.items())
    return errors.VerificationError(f"{error}{rules}", definition.constraints)


def constant(value: Any) -> Any:
    """weft.constant of an array, a tensor or nested lists."""
    return create("weft.constant", [], [("value", to_elements(value))], [])


def reference(operand: Any) -> tuple[int, int]:
    """The session's name of a value of its module; arrays become constants."""
    if isinstance(operand, (np.ndarray, np.generic, torch.Tensor)):
        return constant(operand)._ref
    return reference_in(insertion_point().module, operand)


def reference_in(module: Module, operand: Any) -> tuple[int, int]:
    """Raises: errors.IRError, unless the operand is a value of the module."""
    ref = getattr(operand, "_ref", None)
    if ref is None:
        raise errors.IRError(f"expected a value as operand, found {operand!r}")
    if operand._module._session is not module._session:
        raise errors.IRError(f"expected a value of the same module, found {operand!r}")
    return ref


def written_types(result_type: Any, operands: Sequence[Sequence[Any]]) -> list[str]:
    """What `emit` takes as result types, as MLIR writes them."""
    if result_type is None:
        return []
    if isinstance(result_type, (TensorType, str)):
        return [written(result_type)]
    if all(isinstance(size, int) for size in result_type) and operands:
        first = operands[0][0]
        is_array = isinstance(first, (np.ndarray, np.generic, torch.Tensor))
        dtype = to_elements(first).dtype if is_array else first.type.dtype
        return [written(TensorType(tuple(result_type), dtype))]
    return [written(each) for each in result_type]


_READERS = {
    "i64": int,
    "f64": float,
    "bool": bool,
    "str": str,
    "i64s": lambda value: [int(each) for each in value],
    "elements": to_elements,
    "symbol": lambda name: Syntax(f"@{name}"),
}


def attribute_data(op: str, attribute: Attribute, value: Any) -> Any:
    """A value as the definition wants it.

    Raises: errors.IRError, naming the attribute.
    """
    if isinstance(value, Syntax):
        return value
    if attribute.cases:
        if value not in attribute.cases:
            choices = ", ".join(attribute.cases)
            raise errors.IRError(
                f"{op}: expected {attribute.name} among {choices}, found {value!r}"
            )
        return Syntax(f"#weft.{attribute.kind}<{value}>")
    try:
        return _READERS[attribute.kind](value)
    except (TypeError, ValueError) as error:
        raise errors.IRError(f"{op}: attribute {attribute.name}: {error}") from None


def data_for(op: str, name: str, value: Any) -> Any:
    """A value for the attribute `name` of an op, by its definition if it has one."""
    definition = DEFINITIONS.get(op)
    for attribute in definition.attributes if definition else ():
        if attribute.name == name:
            return attribute_data(op, attribute, value)
    return None if value is True else from_python(value)


def calling_frame() -> types.FrameType | None:
    """The innermost one that is not Weft's own."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    return frame


def caller() -> tuple[str, int, str]:
    """The file, line and function that `calling_frame` is at."""
    frame = calling_frame()
    if frame is None:
        return ("", 0, "")
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
