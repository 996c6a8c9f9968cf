# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of indices that are read from tensors. Each check is a kernel of its own, which runs
first.

An index that depends on computed tensors is not checked. All indices are clamped when they are
used, so that nothing outside of a tensor is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.te import expressions as ex
from weft.te.expressions import Axis, Expr, Load, Reduce
from weft.te.formulas import formula
from weft.te.linear import linear
from weft.te.nests import Lowered, Nest
from weft.te.tensors import Operation, Tensor


def index_checks(lowered: Lowered) -> list[tuple[Tensor, str]]:
    """For each index that is checked, a bool tensor, which is true if the index is in range
    wherever it is used, and the error's text."""
    found: dict[str, Expr] = {}
    for root in lowered.roots:
        for nest in root.all():
            for load, dim, conditions in _read_indices(nest.body, _steps(lowered, nest)):
                index, size = load.indices[dim], load.tensor.shape[dim]
                valid = _implied(conditions, index, size)
                if _is_given(valid, lowered):
                    text = (
                        f"{nest.stage.label}: index {formula(index)} of {load.tensor.name} "
                        f"out of range: dim {dim} has {size}"
                    )
                    found.setdefault(text, valid)
    return [(_everywhere(valid, n), text) for n, (text, valid) in enumerate(found.items())]


def _read_indices(expr: Expr, conditions: list[Expr]) -> Iterator[tuple[Load, int, list[Expr]]]:
    """The loads with a dimension whose index is not a linear form of loops, and the conditions
    under which each is read."""
    if isinstance(expr, ex.Select):
        yield from _read_indices(expr.condition, conditions)
        yield from _read_indices(expr.then, [*conditions, expr.condition])
        yield from _read_indices(expr.otherwise, [*conditions, ~expr.condition])
        return
    for operand in expr.operands():
        yield from _read_indices(operand, conditions)
    if isinstance(expr, Load):
        for dim, index in enumerate(expr.indices):
            if linear(index, {}, lambda axis: axis.extent) is None:
                yield expr, dim, conditions


def _implied(conditions: list[Expr], index: Expr, size: int) -> Expr:
    """That the index is in range, or that the conditions do not hold, so that it is not used."""
    valid = ex.bitwise("and", ex.compared("ge", index, 0), ex.compared("lt", index, size))
    for condition in reversed(conditions):
        valid = ex.Select(condition, valid, ex.Const(True, "bool"))
    return valid


def _steps(lowered: Lowered, nest: Nest) -> list[Expr]:
    """Conditions that an element is needed at all, for what scans compute only in later steps."""
    begin = lowered.schedule.first_steps.get(nest.tensor, 0)
    return [ex.compared("ge", nest.stage.op.axis[0], begin)] if begin else []


def _is_given(expr: Expr, lowered: Lowered) -> bool:
    return all(node.tensor in lowered.inputs for node in ex.walk(expr) if isinstance(node, Load))


def _everywhere(valid: Expr, number: int) -> Tensor:
    """Whether a condition holds for all values of its axes."""
    axes: dict[Axis, Expr] = {}
    for node in ex.walk(valid):
        if isinstance(node, Axis):
            axes.setdefault(node, Axis(node.extent, node.name, "reduce"))
    body = ex.substituted(valid, axes)
    if axes:
        over = tuple(axis for axis in axes.values() if isinstance(axis, Axis))
        body = Reduce("min", body, over)
    return Tensor((), "bool", Operation(f"weft.index{number}", (), body))
