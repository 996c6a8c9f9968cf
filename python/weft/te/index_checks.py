# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of indices that are read from tensors: each is a kernel of its own, which runs first.

An index that depends on computed tensors is not checked; like all others it is clamped when it is
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
    """For each such index a bool, true if it is in range wherever it is used, and what to say if
    it is not."""
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
    """Loads with a dim whose index is no form of loops, and the conditions that they are under."""
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
    """In range, or not used."""
    valid = ex.bitwise("and", ex.compared("ge", index, 0), ex.compared("lt", index, size))
    for condition in reversed(conditions):
        valid = ex.Select(condition, valid, ex.Const(True, "bool"))
    return valid


def _steps(lowered: Lowered, nest: Nest) -> list[Expr]:
    """That an element is needed at all, of what scans compute in their later steps."""
    begin = lowered.schedule.first_steps.get(nest.tensor, 0)
    return [ex.compared("ge", nest.stage.op.axis[0], begin)] if begin else []


def _is_given(expr: Expr, lowered: Lowered) -> bool:
    return all(node.tensor in lowered.inputs for node in ex.walk(expr) if isinstance(node, Load))


def _everywhere(valid: Expr, number: int) -> Tensor:
    """Whether it holds for all values of its axes."""
    axes: dict[Axis, Expr] = {}
    for node in ex.walk(valid):
        if isinstance(node, Axis):
            axes.setdefault(node, Axis(node.extent, node.name, "reduce"))
    body = ex.substituted(valid, axes)
    if axes:
        over = tuple(axis for axis in axes.values() if isinstance(axis, Axis))
        body = Reduce("min", body, over)
    return Tensor((), "bool", Operation(f"weft.index{number}", (), body))
