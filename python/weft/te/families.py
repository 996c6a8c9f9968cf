# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Formulas with `te.var`: their members for given sizes, and the sizes that arrays imply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft import errors
from weft.te import dtypes, sizes
from weft.te.errors import TEError
from weft.te.expressions import (
    Axis,
    Cast,
    Const,
    Expr,
    Load,
    Reduce,
    Var,
    transformed,
    walk,
)
from weft.te.scans import Scan, check_steps, with_results
from weft.te.tensors import Operation, Tensor, in_order

_MODELS = (
    64,
    1024,
    1,
)  # sizes at which schedules are made; the first one is used that makes no shape negative


class Member:
    """The formulas of a family for certain sizes. tensors, axes: by the tensors and axes of the
    family. scalars: the tensors that are read in place of the variables that are not sizes."""

    def __init__(self, outputs: Sequence[Tensor], values: Mapping[Var, int]) -> None:
        self._values = values
        self.tensors: dict[Tensor, Tensor] = {}
        self.axes: dict[Axis, Axis] = {}
        self.scalars: dict[Var, Tensor] = {}
        for tensor in in_order(outputs):
            self.add(tensor)
        self.outputs = [self.tensors[each] for each in outputs]

    def add(self, tensor: Tensor) -> Tensor:
        """Makes the tensor with these sizes. Raises: TEError for a negative size."""
        if tensor in self.tensors:
            return self.tensors[tensor]
        op = tensor.op
        if op.scan is not None:
            return self._scanned(tensor, op.scan)
        shape = tuple(self._size(size, f"{tensor.name}: {size}") for size in tensor.shape)
        body = None if op.body is None else self._expression(op.body)
        made = Operation(op.name, tuple(map(self._axis, op.axis)), body, op.tag)
        self.tensors[tensor] = Tensor(shape, tensor.dtype, made)
        return self.tensors[tensor]

    def _scanned(self, tensor: Tensor, scan: Scan) -> Tensor:
        init, update, state = (
            tuple(map(self.add, each)) for each in (scan.init, scan.update, scan.state)
        )
        made = Scan(init, update, state, scan.begin)
        check_steps(tensor.name, made)
        names = [each.name for each in scan.results]
        for old, new in zip(scan.results, with_results(made, names, scan.results)):
            self.tensors[old] = new
            self.axes.update(zip(old.op.axis, new.op.axis))
        return self.tensors[tensor]

    def _size(self, size: Any, what: str) -> int:
        number = sizes.number(size, self._values)
        if number < 0:
            at = ", ".join(f"{each.name} = {value}" for each, value in self._values.items())
            raise TEError(f"{what}: expected a size of at least 0, found {number} for {at}")
        return sizes.Size(number)

    def _axis(self, axis: Axis) -> Axis:
        if axis not in self.axes:
            extent = self._size(axis.extent, f"{axis.name}: {axis.extent}")
            self.axes[axis] = Axis(extent, axis.name, axis.kind)
        return self.axes[axis]

    def _expression(self, expr: Expr) -> Expr:
        return transformed(expr, self._changed)

    def _changed(self, node: Expr) -> Expr | None:
        if isinstance(node, Axis):
            return self._axis(node)
        if isinstance(node, Var):
            return self._variable(node)
        if isinstance(node, Cast) and isinstance(node.value, Var) and node.value in self._values:
            if not dtypes.is_float(node.dtype):
                return Const(self._values[node.value], node.dtype)
        if isinstance(node, Load):
            return Load(self.add(node.tensor), tuple(map(self._expression, node.indices)))
        if isinstance(node, Reduce):
            values = tuple(map(self._expression, node.values))
            return node.over(values, tuple(map(self._axis, node.axes)))
        return None

    def _variable(self, variable: Var) -> Expr:
        if variable in self._values:
            return Const(self._values[variable], variable.dtype)
        if variable not in self.scalars:
            made = Operation(variable.name, (), None)
            self.scalars[variable] = Tensor((), variable.dtype, made)
        return Load(self.scalars[variable], ())


class Family:
    """Formulas with variables. outputs: the tensors. sizes: the variables in shapes and ranges.
    model: the member at which schedules are made and shown, where all sizes are `example`."""

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        self.outputs = list(outputs)
        self.sizes = list(dict.fromkeys(_sizes(in_order(outputs))))
        names = [each.name for each in self.sizes]
        for name in names:
            if names.count(name) > 1:
                raise TEError(f"expected variables of different names, found two called {name}")
        self.model = self._model()

    def is_size(self, each: Any) -> bool:
        return isinstance(each, Var) and any(each is size for size in self.sizes)

    def _model(self) -> Member:
        for size in _MODELS:
            self.example = size
            try:
                return Member(self.outputs, {each: size for each in self.sizes})
            except TEError as error:
                refused = error
        raise refused

    def at(self, values: Mapping[Var, int]) -> Member:
        """The member for these values. Raises: TEError for sizes that are impossible."""
        return Member(self.outputs, {each: values[each] for each in self.sizes})

    def values(
        self, name: str, shapes: Sequence[tuple[Tensor, Sequence[int]]], given: Mapping[Var, int]
    ) -> dict[Var, int]:
        """The sizes that follow from the shapes of arrays, and those that are given as arguments.

        Raises: errors.ArgumentError for shapes that contradict each other, and for a size that
        follows from none of them.
        """
        found, told = dict(given), {each: "the argument" for each in given}
        known = []
        for tensor, shape in shapes:
            if len(shape) != tensor.ndim:
                raise errors.ArgumentError(
                    f"argument {tensor.name!r}: expected {tensor.ndim} dims, found {len(shape)}"
                )
            for dim, (wanted, size) in enumerate(zip(tensor.shape, shape)):
                known.append((tensor, dim, wanted, int(size)))
        for tensor, dim, wanted, size in sorted(
            known, key=lambda each: not isinstance(each[2], Var)
        ):
            form = sizes.affine(wanted)
            if form is None or form[1] in found:
                continue
            slope, variable, constant = form
            number, rest = divmod(size - constant, slope)
            if rest or number < 0:
                raise errors.ArgumentError(
                    f"argument {tensor.name!r}: expected {wanted} in dim {dim}, found {size}"
                )
            found[variable], told[variable] = number, f"dim {dim} of {tensor.name}"
        for each in self.sizes:
            if each not in found:
                raise errors.ArgumentError(
                    f"{name}: no argument tells the size {each.name}: name it among te.build's "
                    "arguments and give it as a number"
                )
        for tensor, dim, wanted, size in known:
            number = sizes.number(wanted, found)
            if number != size:
                where = "; ".join(
                    f"{each.name} = {found[each]} is {told[each]}"
                    for each in dict.fromkeys(sizes.variables(wanted))
                )
                raise errors.ArgumentError(
                    f"argument {tensor.name!r}: expected {wanted} = {number} in dim {dim}, found "
                    f"{size}" + (f" ({where})" if where else "")
                )
        return found


def _sizes(tensors: Sequence[Tensor]) -> Any:
    for tensor in tensors:
        body = tensor.op.body
        axes = [node for node in walk(body) if isinstance(node, Axis)] if body is not None else []
        for size in (*tensor.shape, *(each.extent for each in (*axes, *tensor.op.reduce_axis))):
            yield from sizes.variables(size)


def is_family(tensors: Sequence[Tensor]) -> bool:
    """Whether the formulas of the tensors have variables."""
    return any(
        any(isinstance(size, Expr) for size in tensor.shape)
        or (tensor.op.body is not None and any(isinstance(n, Var) for n in walk(tensor.op.body)))
        or any(isinstance(axis.extent, Expr) for axis in tensor.op.reduce_axis)
        for tensor in in_order(tensors)
    )
