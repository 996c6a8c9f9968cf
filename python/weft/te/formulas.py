# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions and tensors printed as formulas."""

from __future__ import annotations

from typing import Any

from weft.te import dtypes
from weft.te import expressions as ex

_SIGNS = {
    "add": ("+", 5),
    "sub": ("-", 5),
    "mul": ("*", 6),
    "div": ("/", 6),
    "floordiv": ("//", 6),
    "mod": ("%", 6),
    "pow": ("**", 8),
    "and": ("&", 4),
    "xor": ("^", 3),
    "or": ("|", 2),
    "shl": ("<<", 4.5),
    "shr": (">>", 4.5),
    "lt": ("<", 1),
    "le": ("<=", 1),
    "gt": (">", 1),
    "ge": (">=", 1),
    "eq": ("==", 1),
    "ne": ("!=", 1),
}


def formula(expr: ex.Expr, outside: float = 0) -> str:
    """The expression in Python's notation. outside: the precedence of the operator around it."""
    if isinstance(expr, (ex.Axis, ex.Var)):
        return expr.name
    if isinstance(expr, ex.Const):
        return repr(expr.value)
    if isinstance(expr, ex.Binary):
        if expr.op not in _SIGNS:
            return f"{expr.op}({formula(expr.lhs)}, {formula(expr.rhs)})"
        sign, precedence = _SIGNS[expr.op]
        left = precedence + (0.1 if expr.op == "pow" or precedence == 1 else 0)
        right = precedence + (0.1 if expr.op != "pow" else 0)
        text = f"{formula(expr.lhs, left)} {sign} {formula(expr.rhs, right)}"
        return f"({text})" if precedence < outside else text
    if isinstance(expr, ex.Cast):
        return f"{expr.dtype}({formula(expr.value)})"
    if isinstance(expr, ex.Load):
        return f"{expr.tensor.name}[{', '.join(map(_index, expr.indices)) or '()'}]"
    if isinstance(expr, ex.Slot):
        return expr.name
    if isinstance(expr, ex.Reduce) and expr.reducer is not None:
        names = ", ".join(axis.name for axis in expr.axes)
        values = ", ".join(map(formula, expr.values))
        several = len(expr.values) > 1
        text = f"{expr.reducer.name}({f'({values})' if several else values}, axis=({names}))"
        return f"{text}[{expr.component}]" if several else text
    if isinstance(expr, ex.Reduce):
        names = ", ".join(axis.name for axis in expr.axes)
        axes = names if len(expr.axes) == 1 else f"({names})"
        usual = dtypes.reduced(expr.kind, expr.value.dtype) == expr.dtype
        dtype = "" if usual else f", dtype={expr.dtype}"
        return f"{expr.kind}({formula(expr.value)}, axis={axes}{dtype})"
    name = "if_then_else" if isinstance(expr, ex.Select) else expr.name
    return f"{name}({', '.join(formula(each) for each in expr.operands())})"


def _index(expr: ex.Expr) -> str:
    """An index, without the brackets that a linear form of loops has as an operand."""
    text = formula(expr)
    return text[1:-1] if isinstance(expr, ex.Axis) and text.startswith("(") else text


def definition(tensor: Any) -> str:
    """The tensor's formula: `Z[i, j] = sum(X[i, r] * Y[r, j], axis=r)  for i < 4, j < 5, r < 6`."""
    op = tensor.op
    if op.body is None:
        return declaration(tensor)
    indices = ", ".join(axis.name for axis in op.axis) or "()"
    ranges = ", ".join(f"{axis.name} < {axis.extent}" for axis in (*op.axis, *op.reduce_axis))
    text = f"{tensor.name}[{indices}] = {formula(op.body)}"
    if isinstance(op.body, ex.Reduce) and op.body.reducer is not None:
        ranges += f"  by {op.body.reducer}"
    if op.scan is not None:
        ranges += "".join(
            f", with {state.name} for {result.name}"
            for state, result in zip(op.scan.state, op.scan.results)
        )
    return f"{text}  for {ranges}" if ranges else text


def declaration(tensor: Any) -> str:
    """The tensor's declaration: `X: float32[4, 6]`."""
    return f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}"


def program(tensors: list[Any]) -> str:
    """Each tensor's formula, in order."""
    return "\n".join(definition(each) for each in tensors)
