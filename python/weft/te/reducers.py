# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions by the user's combiner: `comm_reducer` makes them of a combiner and its identity.

A combiner may take tuples, as the arg max of (index, value) does. Each of its results is then a
tensor, and all of them are reduced together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.te import dtypes
from weft.te.errors import TEError
from weft.te.expressions import (
    Axis,
    Binary,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    Slot,
    Var,
    as_expr,
    walk,
)
from weft.te.values import neutral


class Reducer:
    """A combiner as expressions. left, right: its operands, one for each component. results: its
    results. identity: values that leave every operand unchanged."""

    def __init__(
        self,
        name: str,
        left: tuple[Slot, ...],
        right: tuple[Slot, ...],
        results: tuple[Expr, ...],
        identity: tuple[Const, ...],
    ) -> None:
        self.name, self.left, self.right = name, left, right
        self.results, self.identity = results, identity

    def __repr__(self) -> str:
        """As in formulas, by which kernels are told apart."""
        results = ", ".join(map(repr, self.results))
        identity = ", ".join(repr(each.value) for each in self.identity)
        return f"{self.name}(x, y) = ({results}) from ({identity})"


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """A reduction by `fcombine(x, y)`, which must be associative and commutative. fidentity: a
    function of dtypes by name, whose result combined with x gives x. For tuples, x and y are
    tuples, and so are the results of both functions.

    Returns: `reduce(expr, axis, where=None)`, which is used like `te.sum` and gives a tuple for a
    tuple. With an expression in place of the axis it is `fcombine` itself.

    Raises: TEError, when it is used, for a combiner that reads tensors or changes dtypes.
    """
    if not callable(fcombine) or not callable(fidentity):
        raise TEError("te.comm_reducer: expected two functions, a combiner and its identity")

    def reduce(expr: Any, axis: Any, where: Any = None, init: Any = None) -> Any:
        if not _is_axes(axis) and where is None and init is None:
            return fcombine(expr, axis)
        return _reduced(name, fcombine, fidentity, expr, axis, where, init)

    reduce.__name__ = reduce.__qualname__ = name
    return reduce


def _is_axes(given: Any) -> bool:
    several = given if isinstance(given, (tuple, list)) and given else (given,)
    return all(isinstance(each, Axis) and each.kind == "reduce" for each in several)


def _reduced(
    name: str,
    fcombine: Callable[[Any, Any], Any],
    fidentity: Callable[..., Any],
    expr: Any,
    axis: Any,
    where: Any,
    init: Any,
) -> Any:
    from weft.te.functions import counting, from_zero, reduced_axes

    several = isinstance(expr, (tuple, list))
    axes = reduced_axes(name, axis, init)
    values = tuple(from_zero(each, axes) for each in (expr if several else (expr,)))
    if not values:
        raise TEError(f"te.{name}: expected an expression, found an empty tuple")
    reducer = _made(name, fcombine, fidentity, [each.dtype for each in values], several)
    condition = counting(axes, where)
    if condition is not None:
        pairs = zip(values, reducer.identity)
        values = tuple(Select(condition, value, neutral) for value, neutral in pairs)
    kind = _known_kind(reducer)
    if kind is not None:
        made = Reduce(kind, values, axes, values[0].dtype)
        return (made,) if several else made
    results = tuple(
        Reduce("fold", values, axes, each.dtype, reducer, number)
        for number, each in enumerate(values)
    )
    return results if several else results[0]


def _known_kind(reducer: Reducer) -> str | None:
    """The built-in reduction that equals the reducer, if any: built-in ones have gradients and
    schedules of their own."""
    (result, *others), kinds = reducer.results, {"add": "sum", "mul": "prod"}
    if others or not isinstance(result, Binary) or result.op not in ("add", "mul", "max", "min"):
        return None
    both = {result.lhs, result.rhs} == {reducer.left[0], reducer.right[0]}
    kind = kinds.get(result.op, result.op)
    same = reducer.identity[0].value == neutral(kind, result.dtype)
    return kind if both and same and result.dtype != "bool" else None


def _made(
    name: str,
    fcombine: Callable[[Any, Any], Any],
    fidentity: Callable[..., Any],
    types: Sequence[str],
    several: bool,
) -> Reducer:
    left = tuple(Slot(f"x[{n}]" if several else "x", dtype) for n, dtype in enumerate(types))
    right = tuple(Slot(f"y[{n}]" if several else "y", dtype) for n, dtype in enumerate(types))
    combined = fcombine(left, right) if several else fcombine(left[0], right[0])
    identity = fidentity(*types)
    results = _components(name, "the combiner", combined, types, several)
    neutral = _components(name, "the identity", identity, types, several)
    slots = {*left, *right}
    for node in (each for result in results for each in walk(result)):
        if isinstance(node, (Load, Axis, Reduce, Var)) or (
            isinstance(node, Slot) and node not in slots
        ):
            raise TEError(f"te.{name}: expected a combiner of its operands, found `{node}` in it")
    constants = []
    for each in neutral:
        if not isinstance(each, Const):
            raise TEError(f"te.{name}: expected a constant as the identity, found `{each}`")
        constants.append(each)
    return Reducer(name, left, right, results, tuple(constants))


def _components(
    name: str, what: str, given: Any, types: Sequence[str], several: bool
) -> tuple[Expr, ...]:
    found = tuple(given) if several and isinstance(given, (tuple, list)) else (given,)
    if len(found) != len(types):
        raise TEError(f"te.{name}: expected {len(types)} results of {what}, found {len(found)}")
    made = []
    for each, dtype in zip(found, types):
        expr = each if isinstance(each, Expr) else as_expr(each, dtype)
        if isinstance(expr, Const) and expr.dtype != dtype:
            whole = isinstance(expr.value, (bool, int)) or float(expr.value).is_integer()
            if dtypes.is_float(dtype) or whole:
                value = float(expr.value) if dtypes.is_float(dtype) else int(expr.value)
                expr = Const(value, dtype)
        if expr.dtype != dtype:
            raise TEError(
                f"te.{name}: expected {dtype} from {what}, found `{expr}` of {expr.dtype}"
            )
        made.append(expr)
    return tuple(made)
