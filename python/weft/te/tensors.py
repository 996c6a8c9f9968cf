# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of te and how they are made: `placeholder`, `reduce_axis` and `compute`."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.te import dtypes
from weft.te.errors import TEError
from weft.te.expressions import (
    Axis,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    Slot,
    arithmetic,
    as_expr,
    transformed,
    walk,
)
from weft.te.linear import Linear, linear
from weft.te.sizes import Size, checked, is_open
from weft.te.tags import tagged

if TYPE_CHECKING:
    from weft.te.scans import Scan

_counter = itertools.count()


def numbered(name: str) -> str:
    return f"{name}{next(_counter)}"


class NoElement:
    """Refuses arithmetic, for tensors and slices, which are not elements."""

    def refuse_arithmetic(self, *_: Any) -> Any:
        raise NotImplementedError

    def _refuse(self, *_: Any) -> Any:
        return self.refuse_arithmetic()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = __pow__ = __neg__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __lshift__ = __rshift__ = _refuse


class Operation:
    """How a tensor is computed. body: None for a placeholder, otherwise the element's expression in
    terms of `axis` (one for each dimension) and, for a Reduce, of `reduce_axis`. scan: the scan
    whose result the tensor is."""

    def __init__(self, name: str, axis: tuple[Axis, ...], body: Expr | None, tag: str = "") -> None:
        self.name, self.axis, self.body, self.tag = name, axis, body, tag
        self.attrs: dict[str, Any] = {}
        self.reduce_axis = body.axes if isinstance(body, Reduce) else ()
        self.scan: Scan | None = None
        self.tensor: Tensor  # set when the tensor is made
        # The results of one te.compute of several expressions.
        self.made_together: tuple[Tensor, ...] = ()

    def with_axes(self, axes: Mapping[Axis, Axis]) -> Operation:
        """The same operation of the same tensor, with other axes."""

        def change(node: Expr) -> Expr | None:
            if isinstance(node, Axis):
                return axes.get(node, node)
            if isinstance(node, Reduce):
                values = tuple(transformed(each, change) for each in node.values)
                return node.over(values, tuple(axes.get(each, each) for each in node.axes))
            return None

        body = None if self.body is None else transformed(self.body, change)
        made = Operation(
            self.name, tuple(axes.get(each, each) for each in self.axis), body, self.tag
        )
        made.tensor, made.attrs, made.scan = self.tensor, self.attrs, self.scan
        made.made_together = self.made_together
        return made

    @property
    def results(self) -> tuple[Tensor, ...]:
        """The tensors that are computed in the same loops."""
        return self.scan.results if self.scan is not None else (self.tensor,)

    @property
    def num_outputs(self) -> int:
        return len(self.results)

    @property
    def scan_axis(self) -> Axis:
        """A scan's loop over its steps. Raises: AttributeError for other operations."""
        if self.scan is None:
            raise AttributeError(f"{self.name} is no scan and has no scan_axis")
        return self.scan.axis

    def output(self, number: int = 0) -> Tensor:
        if not 0 <= number < len(self.results):
            raise TEError(
                f"{self.name}: expected an output from 0 to {len(self.results) - 1}, found {number}"
            )
        return self.results[number]

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that the body reads, each once, in order of their first use."""
        if self.scan is not None:
            return list(dict.fromkeys((*self.scan.init, *self.scan.update)))
        found: list[Tensor] = []
        for node in walk(self.body) if self.body is not None else ():
            if isinstance(node, Load) and not any(node.tensor is each for each in found):
                found.append(node.tensor)
        return found

    def __repr__(self) -> str:
        from weft.te.formulas import definition

        return definition(self.tensor)


class Slice(NoElement):
    """`t[i]` of a tensor with more dimensions. It becomes an element once it has all indices."""

    def __init__(self, tensor: Tensor, indices: tuple[Any, ...]) -> None:
        self._tensor, self._indices = tensor, indices

    def __getitem__(self, indices: Any) -> Any:
        more = indices if isinstance(indices, tuple) else (indices,)
        return self._tensor[(*self._indices, *more)]

    def refuse_arithmetic(self, *_: Any) -> Any:
        raise TEError(
            f"{self._tensor.name}: expected {self._tensor.ndim} indices for the shape "
            f"{list(self._tensor.shape)}, found {len(self._indices)}"
        )

    def __iter__(self) -> Any:
        return self.refuse_arithmetic()

    def __repr__(self) -> str:
        given = "".join(f"[{each!r}]" for each in self._indices)
        return (
            f"{self._tensor.name}{given} without {self._tensor.ndim - len(self._indices)} indices"
        )


class Tensor(NoElement):
    """A tensor of te. shape: ints, or expressions of `te.var`. dtype: its name. `t[i, j]` is an
    element, for use in the body of a compute."""

    def __init__(self, shape: tuple[Any, ...], dtype: str, op: Operation) -> None:
        self.shape, self.dtype, self.op = shape, dtype, op
        op.tensor = self

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, indices: Any) -> Any:
        if not isinstance(indices, tuple):
            indices = (indices,)
        if 0 < len(indices) < self.ndim:
            return Slice(self, indices)
        if len(indices) != self.ndim:
            raise TEError(
                f"{self.name}: expected {self.ndim} indices for the shape {list(self.shape)}, "
                f"found {len(indices)}"
            )
        return Load(self, tuple(self._index(each, dim) for dim, each in enumerate(indices)))

    def _index(self, given: Any, dim: int) -> Expr:
        if isinstance(given, slice):
            raise TEError(f"{self.name}: expected an index for dim {dim}, found a slice")
        index = as_expr(given)
        if not dtypes.is_integer(index.dtype):
            raise TEError(
                f"{self.name}: expected an integer index for dim {dim}, "
                f"found `{index}` of {index.dtype}"
            )
        known = isinstance(index, Const) and not isinstance(self.shape[dim], Expr)
        if known and not 0 <= index.value < self.shape[dim]:
            raise TEError(
                f"{self.name}: expected an index of dim {dim} from 0 to {self.shape[dim] - 1}, "
                f"found {index.value}"
            )
        return index

    def __call__(self, *indices: Any) -> Any:
        return self[indices]

    def refuse_arithmetic(self, *_: Any) -> Any:
        raise TEError(f"expected an element such as {self.name}[i], found the tensor {self.name}")

    def __iter__(self) -> Any:
        raise TEError(f"{self.name}: a tensor of expressions cannot be iterated over; index it")

    def __repr__(self) -> str:
        from weft.te.formulas import definition

        return definition(self)


def checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.replace(".", "_").isidentifier():
        raise TEError(f"expected a name that is an identifier, found {name!r}")
    return name


def placeholder(shape: Any, dtype: Any = "float32", name: str | None = None) -> Tensor:
    """A tensor that the caller of the kernel gives. shape: ints, or expressions of `te.var`.

    Raises: TEError.
    """
    name = checked_name(name or numbered("placeholder"))
    sizes = checked(shape, name)
    axes = tuple(Axis(size, f"i{dim}", "spatial") for dim, size in enumerate(sizes))
    return Tensor(sizes, dtypes.named(dtype), Operation(name, axes, None))


def reduce_axis(dom: Any, name: str | None = None) -> Axis:
    """An index to reduce over. dom: (first, one past the last), or the number of values from 0 on;
    both may depend on the axes of the tensor that is reduced.

    Raises: TEError.
    """
    name = checked_name(name or numbered("r"))
    begin, end = dom if isinstance(dom, (tuple, list)) and len(dom) == 2 else (0, dom)
    if any(isinstance(node, Axis) for each in (begin, end) for node in walk(as_expr(each))):
        return _ragged(as_expr(begin), as_expr(end), name)
    first, last = checked((begin, end), name)
    if not (isinstance(first, Expr) or isinstance(last, Expr)) and first > last:
        raise TEError(f"{name}: expected a range, found one from {begin!r} to {end!r}")
    whole = not isinstance(first, Expr) and first == 0
    return Axis(last if whole else checked(last - first, name)[0], name, "reduce", first)


def _ragged(begin: Expr, end: Expr, name: str) -> Axis:
    """An axis that is as long as the longest of its ranges, with a limit to the values that
    count."""
    length = arithmetic("sub", end, begin)
    known = dtypes.is_integer(length.dtype) and not _is_unknown(length, 0)
    form = linear(length, {}, lambda axis: axis.extent) if known else None
    if form is None:
        raise TEError(
            f"{name}: expected a range of known length, found one from `{begin}` to `{end}`"
        )
    most = form.range(lambda axis: axis.extent)[1]
    axis = Axis(Size(max(most, 0)), name, "reduce", begin)
    axis.limit = length
    return axis


def compute(
    shape: Any,
    fcompute: Callable[..., Any],
    name: str | None = None,
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """The tensor whose element at i, j, … is `fcompute(i, j, …)`. A tuple of expressions gives a
    tuple of tensors with one shape. tag, attrs: notes for readers, without any effect.
    varargs_names: the names of the indices that a function takes as `*i`.

    Raises: TEError for an invalid body.
    """
    name = checked_name(name or numbered("compute"))
    sizes = checked(shape, name)
    if not callable(fcompute):
        raise TEError(f"{name}: expected a function of the indices, found {fcompute!r}")
    tag = tagged(tag, name)
    names = _parameters(fcompute, len(sizes), name, varargs_names)
    axes = tuple(Axis(size, axis, "spatial") for size, axis in zip(sizes, names))
    bodies = fcompute(*axes)
    if isinstance(bodies, (tuple, list)):
        if not bodies:
            raise TEError(f"{name}: expected an expression, found none")
        several = [_made(f"{name}.v{i}", axes, sizes, each) for i, each in enumerate(bodies)]
    else:
        several = [_made(name, axes, sizes, bodies)]
    for each in several:
        each.op.tag, each.op.attrs, each.op.made_together = tag, dict(attrs or {}), tuple(several)
    return tuple(several) if isinstance(bodies, (tuple, list)) else several[0]


def _made(name: str, axes: tuple[Axis, ...], sizes: tuple[Any, ...], body: Any) -> Tensor:
    if isinstance(body, Tensor):
        raise TEError(f"{name}: expected an element such as {body.name}[i], found a whole tensor")
    expr = as_expr(body)
    check_body(name, axes, expr, None)
    return Tensor(sizes, expr.dtype, Operation(name, axes, expr))


def check_body(name: str, axes: Sequence[Axis], body: Expr, begin: int | None) -> None:
    """Checks the body of a tensor. begin: the first index of dimension 0 that is needed; None if
    that is not known yet.

    Raises: TEError for a reduction inside an expression, or an axis of another tensor.
    """
    inner = body.values if isinstance(body, Reduce) else (body,)
    known = [*axes, *(body.axes if isinstance(body, Reduce) else ())]
    nodes = [node for each in inner for node in walk(each)]
    for node in nodes:
        if isinstance(node, Reduce):
            raise TEError(
                f"{name}: expected `{node}` to be the whole body: "
                "compute it as a tensor of its own and use that tensor's elements"
            )
    for node in nodes:
        if isinstance(node, Axis) and not any(node is axis for axis in known):
            kind = "is not reduced over" if node.kind == "reduce" else "belongs to another tensor"
            raise TEError(f"{name}: the axis {node.name} {kind} in `{body}`")
        if isinstance(node, Slot):
            raise TEError(f"{name}: `{node}` of a combiner is used outside of it, in `{body}`")
    for each in inner:
        _check_indices(name, each, axes[0] if axes else None, begin)


def _check_indices(name: str, expr: Expr, step: Axis | None, begin: int | None) -> None:
    """Raises: TEError for an index that is out of bounds for certain values of the axes. An element
    that a condition may keep from being read is not checked, and neither are indices that are read
    from tensors."""
    operands = expr.operands()
    if isinstance(expr, Select):
        operands = (expr.condition,)
    for each in operands:
        _check_indices(name, each, step, begin)
    if not isinstance(expr, Load):
        return
    for dim, (index, size) in enumerate(zip(expr.indices, expr.tensor.shape)):
        if _is_unknown(index, size):
            continue  # checked when the sizes are known
        form = linear(index, {}, lambda axis: axis.extent)
        low, high = form.range(lambda axis: axis.extent) if form is not None else (0, 0)
        if form is not None and step is not None and low < 0:
            low += _left_out(form, step, low, begin)
        if form is not None and (low < 0 or high >= size) and _is_anything(form):
            raise TEError(
                f"{name}: `{expr}` reads from {low} to {high} in dim {dim} of "
                f"{expr.tensor.name}, which has {size}: read it inside te.if_then_else"
            )


def _left_out(form: Linear, step: Axis, low: int, begin: int | None) -> int:
    """By how much the form's least value grows if the first values of `step` are left out. If the
    tensor may belong to a scan, this is checked once the scan is known."""
    if begin is None:
        return -low if form - form.constant == Linear.of(step) else 0
    return max(form.coefficient(step) or 0, 0) * begin


def _is_unknown(index: Expr, size: Any) -> bool:
    """Whether it depends on variables whether the index is within bounds."""
    nodes = [node.extent if isinstance(node, Axis) else node for node in walk(index)]
    return any(map(is_open, (size, *nodes)))


def _is_anything(form: Any) -> bool:
    """Whether the form has values at all, that is, no axis is empty."""
    return all(axis.extent > 0 for axis in form.axes())


def _parameters(
    function: Callable[..., Any], count: int, name: str, rest: Sequence[str] | None
) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        fixed = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
        names = [*fixed, *(f"i{n}" for n in range(len(fixed), count))][:count]
        if rest is None:
            return names
        if len(fixed) + len(rest) != count:
            raise TEError(
                f"{name}: expected varargs_names of {count - len(fixed)} indices, found {len(rest)}"
            )
        return [*fixed, *map(checked_name, rest)]
    needed = [each for each in parameters if each.default is each.empty]
    if not len(needed) <= count <= len(parameters):
        raise TEError(
            f"{name}: expected a function of {count} indices, one for each dim, "
            f"found one of {len(parameters)}"
        )
    return [each.name for each in parameters[:count]]


def in_order(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The outputs and all tensors that they are computed from, each once, after those that it
    reads."""
    order: list[Tensor] = []

    def visit(tensor: Tensor) -> None:
        if not any(tensor is each for each in order):
            for each in tensor.op.input_tensors:
                visit(each)
            order.extend(reversed(tensor.op.results))

    for output in outputs:
        visit(output)
    return order
