# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who makes the ops that the functions of `weft._graph_ops` ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from weft import errors
from weft.dialect.definitions import Definition


class Maker(Protocol):
    """Where ops come into being: a place in a module of `weft.ir`, or a graph that the frontend
    builds."""

    def make(
        self,
        definition: Definition,
        operands: Sequence[Sequence[Any]],
        attributes: Sequence[Any],
        result_type: Any,
    ) -> Any:
        """The op's result, a tuple of several, or what stands for an op without any.

        operands: by the groups of the definition. attributes: in its order, None for one that is
        left out. result_type: as the maker writes types; None where they are inferred.
        """


class StandIn:
    """An operand that stands for any value: a pattern is made of it, not an op."""

    __slots__ = ()

    def record(
        self, definition: Definition, operands: Sequence[Sequence[Any]], attributes: Sequence[Any]
    ) -> Any:
        raise NotImplementedError


_maker: ContextVar[Maker | None] = ContextVar("maker", default=None)


@contextlib.contextmanager
def making(maker: Maker) -> Iterator[None]:
    """Who makes ops in the body of a `with` statement."""
    token = _maker.set(maker)
    try:
        yield
    finally:
        _maker.reset(token)


def maker() -> Maker:
    """Raises: errors.IRError outside all places where ops can be made."""
    found = _maker.get()
    if found is None:
        raise errors.IRError(
            "expected a place for the op: inside a weft.ir.Builder function, a @weft.ir.function, "
            "a pattern's replacement, or rewriter.before(op)"
        )
    return found


def emit(
    definition: Definition,
    operands: Sequence[Sequence[Any]],
    attributes: Sequence[Any] = (),
    result_type: Any = None,
) -> Any:
    """`Maker.make` of the maker at work; the node of a pattern, if an operand is part of one."""
    for group in operands:
        for operand in group:
            if isinstance(operand, StandIn):
                return operand.record(definition, operands, attributes)
    return maker().make(definition, operands, attributes, result_type)
