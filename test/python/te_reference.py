# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor expressions evaluated by NumPy, for comparison with what is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    """The values of a tensor. given: of the placeholders; what is computed is added."""
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
            result = _REDUCE[body.kind](values, axis=over)
        else:
            result = np.broadcast_to(_value(body, grid, given), shape)
    given[tensor] = np.ascontiguousarray(result).astype(tensor.dtype).reshape(tensor.shape)
    return given[tensor]


def _value(expr: ex.Expr, grid: dict[Any, Any], given: dict[Tensor, np.ndarray]) -> Any:
    if isinstance(expr, ex.Axis):
        return grid[expr].astype(np.int64)
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
