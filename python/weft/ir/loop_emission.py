# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of linalg on tensors, as text, of what `weft.ir.loops` describes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from weft import errors
from weft.ir.loop_parts import place, sizes_of, within
from weft.ir.loops import (
    FLOATS,
    Arithmetic,
    Axis,
    Index,
    Load,
    Number,
    Reduction,
    Scalar,
    Tensor,
    arithmetic_name,
)


class Emitter:
    """The text of a function that computes `results` of `operands`, in linalg on tensors."""

    def __init__(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        self.operands = list(operands)
        self.results = list(results)
        self.has_product = False
        self._lines: list[str] = []
        self._names: dict[int, str] = {}
        self._numbers = itertools.count()

    def function(self) -> str:
        """Without the name, which is `@NAME`."""
        params = []
        for number, operand in enumerate(self.operands):
            self._names[id(operand)] = f"%arg{number}"
            params.append(f"%arg{number}: {_type(operand)}")
        values = [self._tensor(each) for each in self.results]
        types = ", ".join(map(_type, self.results))
        kind = "contraction" if self.has_product else "nest"
        head = f"func.func private @NAME({', '.join(params)}) -> ({types})"
        end = f"return {', '.join(values)} : {types}"
        body = "\n  ".join([*self._lines, end])
        return f'{head} attributes {{weft.kernel = "{kind}"}} {{\n  {body}\n}}\n'

    def _fresh(self) -> str:
        return f"%{next(self._numbers)}"

    def _tensor(self, tensor: Tensor) -> str:
        if (name := self._names.get(id(tensor))) is not None:
            return name
        if tensor.body is None:
            raise errors.IRError("expected operands of the op, found another tensor")
        element, axes = tensor.body, list(tensor.axes)
        reduction = element if isinstance(element, Reduction) else None
        if reduction is not None:
            axes += reduction.axes
            element = reduction.body
        loads = _loads(element)
        sources = [self._slice(load) for load in loads]
        init = self._init(tensor, reduction)
        type_ = _type(tensor)
        maps = [_map(axes, within(load)) for load in loads] + [_map(axes, tensor.axes)]
        kinds = ", ".join(f'"{"reduction" if axis.reduces else "parallel"}"' for axis in axes)
        ins = ""
        if loads:
            types = ", ".join(_type_of(sizes_of(load), load.dtype) for load in loads)
            ins = f" ins({', '.join(sources)} : {types})"
        name = self._fresh()
        self._lines.append(
            f"{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = "
            f"[{kinds}]}}{ins} outs({init} : {type_}) {{"
        )
        self._body(loads, element, reduction, tensor.dtype)
        self._lines.append(f"}} -> {type_}")
        self._names[id(tensor)] = name
        return name

    def _slice(self, load: Load) -> str:
        """The part of a tensor that is read: loops go along all of it."""
        whole, sizes = self._tensor(load.tensor), sizes_of(load)
        places = [place(each) for each in load.index]
        if sizes == load.tensor.shape and all(each in (None, (0, 1)) for each in places):
            return whole
        starts = [each[0] if each else 0 for each in places]
        steps = [each[1] if each else 1 for each in places]
        name, part = self._fresh(), _type_of(sizes, load.dtype)
        self._lines.append(
            f"{name} = tensor.extract_slice {whole}{starts} {list(sizes)} {steps} : "
            f"{_type(load.tensor)} to {part}"
        )
        return name

    def _init(self, tensor: Tensor, reduction: Reduction | None) -> str:
        type_, empty = _type(tensor), self._fresh()
        self._lines.append(f"{empty} = tensor.empty() : {type_}")
        if reduction is None:
            return empty
        number, filled = self._fresh(), self._fresh()
        value = _identity(reduction.kind, tensor.dtype)
        self._lines.append(f"{number} = arith.constant {value} : {tensor.dtype}")
        self._lines.append(
            f"{filled} = linalg.fill ins({number} : {tensor.dtype}) outs({empty} : {type_}) "
            f"-> {type_}"
        )
        return filled

    def _body(
        self, loads: list[Load], element: Scalar, reduction: Reduction | None, dtype: str
    ) -> None:
        names = {_key(load): f"%in{number}" for number, load in enumerate(loads)}
        params = [f"%in{number}: {load.dtype}" for number, load in enumerate(loads)]
        self._lines.append(f"^bb0({', '.join([*params, f'%out: {dtype}'])}):")
        value = self._scalar(element, names)
        if reduction is not None:
            product = isinstance(element, Arithmetic) and element.name == "arith.mulf"
            self.has_product |= reduction.kind == "add" and product
            reduced = self._fresh()
            name = arithmetic_name(reduction.kind, dtype)
            self._lines.append(f"  {reduced} = {name} %out, {value} : {dtype}")
            value = reduced
        self._lines.append(f"  linalg.yield {value} : {dtype}")

    def _scalar(self, element: Scalar, names: dict[Any, str]) -> str:
        if isinstance(element, Load):
            return names[_key(element)]
        name = self._fresh()
        if isinstance(element, Number):
            self._lines.append(
                f"  {name} = arith.constant {_number(element.value, element.dtype)} : "
                f"{element.dtype}"
            )
            return name
        operands = [self._scalar(each, names) for each in element.operands]
        self._lines.append(f"  {name} = {element.name} {', '.join(operands)} : {element.dtype}")
        return name


def _loads(element: Scalar) -> list[Load]:
    """Each once."""
    found: dict[Any, Load] = {}

    def visit(each: Scalar) -> None:
        if isinstance(each, Load):
            found.setdefault(_key(each), each)
        elif isinstance(each, Arithmetic):
            for operand in each.operands:
                visit(operand)
        elif isinstance(each, Reduction):
            raise errors.IRError("expected one reduction of an element, found one within another")

    visit(element)
    return list(found.values())


def _key(load: Load) -> Any:
    return (
        id(load.tensor),
        tuple(
            (tuple((id(a), f) for a, f in each.terms.items()), each.offset) for each in load.index
        ),
    )


def _map(axes: Sequence[Axis], index: Sequence[Index]) -> str:
    names = {axis: f"d{number}" for number, axis in enumerate(axes)}
    results = []
    for each in index:
        if missing := [axis for axis in each.terms if axis not in names]:
            raise errors.IRError(
                f"expected the axes of the element and those that it is reduced along, found "
                f"{len(missing)} other"
            )
        terms = [
            names[axis] if f == 1 else f"{names[axis]} * {f}" for axis, f in each.terms.items()
        ]
        if each.offset or not terms:
            terms.append(str(each.offset))
        results.append(" + ".join(terms))
    return f"affine_map<({', '.join(names.values())}) -> ({', '.join(results)})>"


def _type(tensor: Tensor) -> str:
    return _type_of(tensor.shape, tensor.dtype)


def _type_of(shape: Sequence[int], dtype: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def _identity(kind: str, dtype: str) -> str:
    if kind == "add":
        return _number(0, dtype)
    is_max = kind == "max"
    if dtype in FLOATS:
        bits = {
            "f32": ("0xFF800000", "0x7F800000"),
            "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
        }
        return bits[dtype][0 if is_max else 1]
    width = int(dtype[1:])
    return str(-(2 ** (width - 1)) if is_max else 2 ** (width - 1) - 1)


def _number(value: Any, dtype: str) -> str:
    return f"{float(value):.17e}" if dtype in FLOATS else str(int(value))


def emit_function(body: Callable[..., Any], op: Any, operands: Sequence[Tensor]) -> str:
    """The text of the function that `body(op, *operands)` describes, named `@NAME`.

    Raises: errors.IRError.
    """
    made = body(op, *operands)
    results = list(made) if isinstance(made, (tuple, list)) else [made]
    for each in results:
        if not isinstance(each, Tensor):
            raise errors.IRError(f"expected the body to return what compute makes, found {each!r}")
    return Emitter(operands, results).function()
