# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor expressions evaluated by NumPy, for comparison with what is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import te
from weft.te import expressions as ex
from weft.te.tensors import Tensor

_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_REDUCE = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def evaluate(tensor: Tensor, given: dict[Tensor, np.ndarray]) -> np.ndarray:
    """The values of a tensor. `given` has those of the placeholders; computed ones are added."""
    if tensor in given:
        return given[tensor]
    for each in tensor.op.input_tensors:
        evaluate(each, given)
    body = tensor.op.body
    axes = [*tensor.op.axis, *tensor.op.reduce_axis]
    shape = [axis.extent for axis in axes]
    grid = {axis: g for axis, g in zip(axes, np.indices(shape, sparse=True))} if axes else {}
    with np.errstate(all="ignore"):
        if isinstance(body, ex.Reduce):
            values = np.broadcast_to(_value(body.value, grid, given), shape)
            over = tuple(range(tensor.ndim, len(shape)))
            if body.reducer is not None:
                result = _folded(body, grid, given, shape, tensor.ndim)
            else:
                result = _REDUCE[body.kind](values, axis=over)
        else:
            result = np.broadcast_to(_value(body, grid, given), shape)
    given[tensor] = np.ascontiguousarray(result).astype(tensor.dtype).reshape(tensor.shape)
    return given[tensor]


def _folded(
    body: ex.Reduce, grid: dict[Any, Any], given: dict[Tensor, np.ndarray], shape: Any, ndim: int
) -> np.ndarray:
    """Combines one term after another by the reducer's own combiner."""
    reducer = body.reducer
    terms = [
        np.broadcast_to(_value(each, grid, given), shape).reshape(*shape[:ndim], -1)
        for each in body.values
    ]
    total: list[Any] = [np.full(shape[:ndim], each.value, each.dtype) for each in body.identities]
    for number in range(terms[0].shape[-1]):
        slots = dict(zip(reducer.left, total))
        slots |= dict(zip(reducer.right, (each[..., number] for each in terms)))
        total = [_value(each, slots, given) for each in reducer.results]
    return total[body.component]


def _value(expr: ex.Expr, grid: dict[Any, Any], given: dict[Tensor, np.ndarray]) -> Any:
    if isinstance(expr, ex.Axis):
        return grid[expr].astype(np.int64)
    if isinstance(expr, ex.Slot):
        return grid[expr]
    if isinstance(expr, ex.Const):
        return np.asarray(expr.value, dtype=expr.dtype)
    values = [_value(each, grid, given) for each in expr.operands()]
    if isinstance(expr, ex.Load):
        # What a condition keeps from being read may lie outside.
        indices = [np.clip(i, 0, size - 1) for i, size in zip(values, expr.tensor.shape)]
        return given[expr.tensor][tuple(indices)]
    if isinstance(expr, ex.Cast):
        return np.asarray(values[0]).astype(expr.dtype)
    if isinstance(expr, ex.Select):
        return np.where(*values)
    if isinstance(expr, ex.Binary):
        return np.asarray(_BINARY[expr.op](*values)).astype(expr.dtype)
    assert isinstance(expr, ex.Call)
    return np.asarray(getattr(np, expr.name)(*values)).astype(expr.dtype)


def placeholder(name: str, *shape: int, dtype: str = "float32") -> Tensor:
    return te.placeholder(shape, dtype, name)


_random = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype("float32")


def check_program(
    schedule: te.Schedule, args: list[Tensor], given: list[np.ndarray], expected: Any
) -> None:
    """Builds a program by its schedule and by the default one, and checks the arrays of both."""
    results = expected if isinstance(expected, tuple) else (expected,)
    computed = [each for each in args if each.op.body is not None]
    for function in (te.build(schedule, args, default=False), te.build(computed, args)):
        found = function(*given)
        found = found if isinstance(found, tuple) else (found,)
        assert len(found) == len(results)
        for a, b in zip(found, results):
            bound = 1e-2 if a.dtype == np.float16 else 2e-5
            scale = max(1.0, float(np.abs(np.nan_to_num(b)).max(initial=0)))
            np.testing.assert_allclose(a, b, rtol=bound, atol=bound * scale)


def mm(m, n, k):
    """A product: its operands and itself as tensors of te, then their arrays."""
    A, B = placeholder("A", m, k), placeholder("B", k, n)
    k_ = te.reduce_axis((0, k), "k")
    Cc = te.compute((m, n), lambda x, y: te.sum(A[x, k_] * B[k_, y], axis=k_), name="C")
    a, b = normal(m, k), normal(k, n)
    return A, B, Cc, a, b, a @ b
