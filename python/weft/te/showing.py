# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops of a schedule as indented text."""

from __future__ import annotations

from weft.te.expressions import Axis, Expr, Reduce, substituted
from weft.te.formulas import formula
from weft.te.linear import AxisAtom, Linear, Quotient
from weft.te.nests import Lowered, Nest


def as_loops(lowered: Lowered) -> str:
    """One loop on each line, with the statement of each tensor innermost."""
    lines: list[str] = []
    for nest in lowered.roots:
        _show(lowered, nest, 0, lines)
    return "\n".join(lines)


def _show(lowered: Lowered, nest: Nest, depth: int, lines: list[str]) -> None:
    labels = nest.stage.state.labels
    if nest.enclosing and nest.stage.op.scan is None:
        shape = list(nest.sizes)
        lines.append(f"{'  ' * depth}{nest.stage.label}: buffer of {nest.tensor.dtype}{shape}")
    reduction = nest.body if isinstance(nest.body, Reduce) else None
    initialised = reduction is None
    for place, axis in enumerate(nest.loops):
        decomposed = axis is nest.stage.state.decomposed
        if not initialised and (decomposed or axis.kind == "reduce"):
            inner = nest.loops[place:] if nest.stage.state.decomposed is not None else []
            _show_start(lowered, nest, inner, depth, lines)
            initialised = True
        if nest.stage.state.microkernel and axis is nest.stage.state.microkernel[1][0]:
            lines.append(f"{'  ' * depth}microkernel {nest.stage.state.microkernel[0]}:")
            depth += 1
        if lowered.extents[axis] == 1 and not nest.attached.get(axis):
            continue
        kind = nest.kind(axis)
        head = "for" if kind == "serial" else f"{kind} for"
        lines.append(f"{'  ' * depth}{head} {labels[axis]} in {lowered.extents[axis]}:")
        depth += 1
        for inner in nest.attached.get(axis, []):
            _show(lowered, inner, depth, lines)
        for tensor, at, offset in nest.stage.state.prefetches:
            if at is axis:
                lines.append(f"{'  ' * depth}prefetch {tensor.name} {offset} steps on")
    if reduction is not None and not initialised:
        lines.append(f"{'  ' * depth}{_target(nest)} = {_start(reduction)}")
    for guard in nest.guards:
        lines.append(f"{'  ' * depth}if {_condition(guard, nest)}:")
        depth += 1
    lines.append(f"{'  ' * depth}{_statement(nest)}")


def _show_start(
    lowered: Lowered, nest: Nest, loops: list[Axis], depth: int, lines: list[str]
) -> None:
    """Shows where the sums' first values are stored. loops: the loops around that, if it has its
    own."""
    assert isinstance(nest.body, Reduce)
    labels = nest.stage.state.labels
    for axis in loops:
        if axis.kind != "reduce" and lowered.extents[axis] > 1:
            lines.append(f"{'  ' * depth}for {labels[axis]} in {lowered.extents[axis]}:")
            depth += 1
    lines.append(f"{'  ' * depth}{_target(nest)} = {_start(nest.body)}")


def _start(reduction: Reduce) -> str:
    if reduction.reducer is not None:
        return repr(reduction.identities[reduction.component].value)
    return {"sum": "0", "prod": "1", "max": "the least value", "min": "the greatest value"}[
        reduction.kind
    ]


def _target(nest: Nest) -> str:
    indices = ", ".join(_text(nest.index[axis], nest) for axis in nest.stage.op.axis)
    return f"{nest.stage.label}[{indices or '()'}]"


def _statement(nest: Nest) -> str:
    body = nest.body
    target = _target(nest)
    value = body.value if isinstance(body, Reduce) else body
    names: dict[Axis, Expr] = {
        axis: Axis(axis.extent, _bracketed(form, nest), axis.kind)
        for axis, form in nest.index.items()
    }
    text = formula(substituted(value, names))
    if isinstance(body, Reduce):
        sign = {"sum": "+=", "prod": "*="}.get(body.kind)
        name = body.reducer.name if body.reducer is not None else body.kind
        return f"{target} {sign} {text}" if sign else f"{target} = {name}({target}, {text})"
    return f"{target} = {text}"


def _condition(guard: Linear, nest: Nest) -> str:
    """The condition that a form is not negative, written with plus signs where possible."""
    if all(factor < 0 for factor in guard.terms.values()):
        positive = Linear({atom: -factor for atom, factor in guard.terms.items()})
        return f"{_text(positive, nest)} < {guard.constant + 1}"
    return f"{_text(guard, nest)} >= 0"


def _bracketed(form: Linear, nest: Nest) -> str:
    text = _text(form, nest)
    return f"({text})" if " " in text else text


def _text(form: Linear, nest: Nest) -> str:
    parts = []
    for atom, factor in form.terms.items():
        if isinstance(atom, AxisAtom):
            text = nest.stage.state.labels.get(atom.axis, atom.axis.name)
        else:
            sign = "//" if isinstance(atom, Quotient) else "%"
            text = f"{_bracketed(atom.form, nest)} {sign} {atom.divisor}"
            text = f"({text})" if factor != 1 or len(form.terms) > 1 else text
        parts.append(text if factor == 1 else f"{text}*{factor}")
    if form.constant or not parts:
        parts.append(str(form.constant))
    return " + ".join(parts).replace("+ -", "- ")
