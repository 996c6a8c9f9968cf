# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of tensors in registers: expressions evaluated at a point of the loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from weft.te import dtypes
from weft.te import expressions as ex
from weft.te.arithmetic import Arithmetic, Value
from weft.te.code import Code
from weft.te.expressions import Axis, Expr
from weft.te.linear import AxisAtom, Linear, Quotient, linear
from weft.te.reducers import Reducer
from weft.te.tensors import Tensor
from weft.te.values import of_lanes, stored_type


@dataclass
class Buffer:
    """A buffer. memref: its name, of one dimension. offset: its first element's place in the
    tensor. sizes: its shape."""

    memref: str
    type: str
    offset: list[Linear]
    sizes: list[int]

    @property
    def strides(self) -> list[int]:
        strides = [1] * len(self.sizes)
        for dim in range(len(self.sizes) - 2, -1, -1):
            strides[dim] = strides[dim + 1] * self.sizes[dim + 1]
        return strides


@dataclass
class Point:
    """A point in the loops: an SSA value or a number for each loop. The loop `vector` runs in lanes
    from `base` on. mask: the lanes in which there is something to compute; None means all."""

    loops: dict[Axis, str | int] = field(default_factory=dict)
    vector: Axis | None = None
    base: int = 0
    lanes: int = 0
    mask: Value | None = None

    def at(self, axis: Axis, value: str | int) -> Point:
        return Point({**self.loops, axis: value}, self.vector, self.base, self.lanes, self.mask)


class Elements:
    """Evaluates the body of one nest. index: the value of each axis as a linear form of loops."""

    def __init__(
        self,
        code: Code,
        buffers: dict[Tensor, Buffer],
        index: dict[Axis, Linear],
        extent: Callable[[Axis], int],
    ) -> None:
        self.code, self.buffers, self.index, self.extent = code, buffers, index, extent
        self.math = Arithmetic(code)
        self.slots: dict[Expr, Value] = {}  # the operands of a combiner

    # Indices

    def position(self, form: Linear, point: Point) -> str:
        """The value of a form as an index, for the first lane."""
        operands: list[str] = []
        text = self._affine(form, point, operands)
        if not operands:
            return self.code.index(int(text))
        if text == "d0":
            return operands[0]
        dims = ", ".join(f"d{number}" for number in range(len(operands)))
        names = ", ".join(operands)
        return self.code.op(f"affine.apply affine_map<({dims}) -> ({text})>({names})")

    def _affine(self, form: Linear, point: Point, operands: list[str]) -> str:
        """The form in affine_map's notation. Its dimensions are appended to `operands`."""
        constant, parts = form.constant, []
        for atom, factor in form.terms.items():
            if isinstance(atom, AxisAtom):
                value = point.base if atom.axis is point.vector else point.loops[atom.axis]
                if isinstance(value, int):
                    constant += factor * value
                    continue
                if value not in operands:
                    operands.append(value)
                text = f"d{operands.index(value)}"
            else:
                inner = self._affine(atom.form, point, operands)
                sign = "floordiv" if isinstance(atom, Quotient) else "mod"
                if inner.lstrip("-").isdigit():
                    whole, rest = divmod(int(inner), atom.divisor)
                    constant += factor * (whole if sign == "floordiv" else rest)
                    continue
                text = f"(({inner}) {sign} {atom.divisor})"
            parts.append(text if factor == 1 else f"{text} * {factor}")
        if constant or not parts:
            parts.append(str(constant))
        return " + ".join(parts)

    def form_value(self, form: Linear, point: Point) -> Value:
        """The value of a form as int64; a vector if it depends on the vectorised loop."""
        step = form.coefficient(point.vector) if point.vector is not None and point.lanes else 0
        if step is not None:
            name = self.position(form, point)
            first = Value(self.code.op(f"arith.index_cast {name} : index to i64"), "int64", 0)
            if not step:
                return first
            steps = ", ".join(str(step * lane) for lane in range(point.lanes))
            kind = of_lanes("i64", point.lanes)
            lanes = self.code.op(f"arith.constant dense<[{steps}]> : {kind}")
            return self.math.binary(
                "add", self.math.splat(first, point.lanes), Value(lanes, "int64", point.lanes)
            )
        total = self.math.constant(form.constant, "int64")
        for atom, factor in form.terms.items():
            if isinstance(atom, AxisAtom):
                value = self.form_value(Linear({atom: 1}), point)
            else:
                op = "floordiv" if isinstance(atom, Quotient) else "mod"
                divisor = self.math.constant(atom.divisor, "int64")
                value = self.math.binary(op, self.form_value(atom.form, point), divisor)
            scaled = self.math.binary("mul", value, self.math.constant(factor, "int64"))
            total = self.math.binary("add", total, scaled)
        return total

    def is_inside(self, node: ex.Load) -> bool:
        """Whether every index is known to be within the tensor."""
        for index, size in zip(node.indices, node.tensor.shape):
            form = linear(index, {}, lambda axis: axis.extent)
            if form is None:
                continue  # an index that is read is clamped when it is used
            low, high = form.range(lambda axis: axis.extent)
            if low < 0 or high >= size:
                return False
        return True

    # Memory

    def _address(self, node: ex.Load, point: Point) -> tuple[str, Value | None, int]:
        """The position of the first lane, the distances of the lanes from it (None if they are
        multiples of one number), and that number."""
        buffer = self.buffers[node.tensor]
        form, scattered = Linear(), None
        for dim, (expr, stride) in enumerate(zip(node.indices, buffer.strides)):
            index = linear(expr, self.index, self.extent)
            if index is not None:
                form = form + (index - buffer.offset[dim]) * stride
                continue
            value = self._clamped(self.value(expr, point), node.tensor.shape[dim])
            value = self.math.binary("mul", value, self.math.constant(stride, "int64"))
            scattered = self.math.binary("add", scattered, value) if scattered else value
        step = form.coefficient(point.vector) if point.vector is not None and point.lanes else 0
        if step is None or (scattered is not None and scattered.lanes):
            whole = self.form_value(form, point)
            distances = self.math.binary("add", whole, scattered) if scattered else whole
            return self.code.index(0), self.math.splat(distances, point.lanes), 0
        position = self.position(form, point)
        if scattered is not None:
            extra = self.code.op(f"arith.index_cast {scattered.name} : i64 to index")
            position = self.code.op(f"arith.addi {position}, {extra} : index")
        return position, None, step

    def _clamped(self, value: Value, size: int) -> Value:
        """An index that was read or computed, as int64, clamped to the tensor."""
        value = self.math.converted(value, "int64")
        low, high = self.math.constant(0, "int64"), self.math.constant(max(size - 1, 0), "int64")
        return self.math.binary("min", self.math.binary("max", value, low), high)

    def load(self, node: ex.Load, point: Point) -> Value:
        buffer, dtype = self.buffers[node.tensor], node.dtype
        position, distances, step = self._address(node, point)
        mask = point.mask
        if distances is None and step == 0:
            if mask is not None:
                position = self._valid(position, mask)
            name = self.code.load(f"memref.load {buffer.memref}[{position}] : {buffer.type}")
            return self.math.widened(name, dtype, 0)
        lanes = point.lanes
        kind = of_lanes(stored_type(dtype), lanes)
        if distances is None and step == 1 and mask is None:
            text = f"vector.load {buffer.memref}[{position}] : {buffer.type}, {kind}"
            return self.math.widened(self.code.load(text), dtype, lanes)
        zero = "0" if not dtypes.is_float(dtype) else "0.0"
        fill = self.code.op(f"arith.constant dense<{zero}> : {kind}")
        masks = of_lanes("i1", lanes)
        if mask is None:
            mask = Value(self.code.op(f"arith.constant dense<true> : {masks}"), "bool", lanes)
        mask = self.math.splat(mask, lanes)
        if distances is None and step == 1:
            text = (
                f"vector.maskedload {buffer.memref}[{position}], {mask.name}, {fill} : "
                f"{buffer.type}, {masks}, {kind} into {kind}"
            )
            return self.math.widened(self.code.load(text), dtype, lanes)
        numbers = of_lanes("i64", lanes)
        if distances is None:
            steps = ", ".join(str(step * lane) for lane in range(lanes))
            distances = Value(
                self.code.op(f"arith.constant dense<[{steps}]> : {numbers}"), "int64", lanes
            )
        text = (
            f"vector.gather {buffer.memref}[{position}] [{distances.name}], {mask.name}, {fill} : "
            f"{buffer.type}, {numbers}, {masks}, {kind} into {kind}"
        )
        return self.math.widened(self.code.load(text), dtype, lanes)

    def _valid(self, position: str, mask: Value) -> str:
        """A position that may be read even if no lane of the mask is set."""
        anything = self.math.reduced("max", mask) if mask.lanes else mask
        zero = self.code.index(0)
        return self.code.op(f"arith.select {anything.name}, {position}, {zero} : index")

    def store(self, target: Tensor, axes: tuple[Axis, ...], value: Value, point: Point) -> None:
        buffer = self.buffers[target]
        node = ex.Load(target, axes)
        position, distances, step = self._address(node, point)
        value = self.math.splat(value, point.lanes)
        name, lanes = self.math.narrowed(value), point.lanes
        if not lanes:
            self.code.store(f"memref.store {name}, {buffer.memref}[{position}] : {buffer.type}")
            return
        kind, masks = of_lanes(stored_type(value.dtype), lanes), of_lanes("i1", lanes)
        mask = self.math.splat(point.mask, lanes) if point.mask else None
        if distances is None and step == 1:
            if mask is None:
                text = f"vector.store {name}, {buffer.memref}[{position}] : {buffer.type}, {kind}"
            else:
                text = (
                    f"vector.maskedstore {buffer.memref}[{position}], {mask.name}, {name} : "
                    f"{buffer.type}, {masks}, {kind}"
                )
            self.code.store(text)
            return
        numbers = of_lanes("i64", lanes)
        if distances is None:
            steps = ", ".join(str(step * lane) for lane in range(lanes))
            text = f"arith.constant dense<[{steps}]> : {numbers}"
            distances = Value(self.code.op(text), "int64", lanes)
        if mask is None:
            mask = Value(self.code.op(f"arith.constant dense<true> : {masks}"), "bool", lanes)
        self.code.store(
            f"vector.scatter {buffer.memref}[{position}] [{distances.name}], {mask.name}, {name} : "
            f"{buffer.type}, {numbers}, {masks}, {kind}"
        )

    def prefetch(self, body: Expr, tensor: Tensor, point: Point) -> None:
        """Prefetches the first element that each load of the tensor reads at a point. The point may
        be outside of the tensor, since a prefetch of any address is harmless."""
        for node in ex.walk(body):
            if isinstance(node, ex.Load) and node.tensor is tensor:
                position, _, _ = self._address(node, point)
                buffer = self.buffers[tensor]
                self.code.line(
                    f"memref.prefetch {buffer.memref}[{position}], read, locality<3>, data : "
                    f"{buffer.type}"
                )

    # Expressions

    def value(self, expr: Expr, point: Point) -> Value:
        if expr.dtype == "int64" and not isinstance(expr, ex.Const):
            form = linear(expr, self.index, self.extent)
            if form is not None:
                return self.form_value(form, point)
        if isinstance(expr, ex.Slot):
            return self.slots[expr]
        if isinstance(expr, ex.Const):
            return self.math.constant(expr.value, expr.dtype)
        if isinstance(expr, ex.Load):
            return self.load(expr, point)
        if isinstance(expr, ex.Cast):
            return self.math.converted(self.value(expr.value, point), expr.dtype)
        if isinstance(expr, ex.Select):
            return self._selected(expr, point)
        operands = [self.value(each, point) for each in expr.operands()]
        if isinstance(expr, ex.Binary):
            return self.math.binary(expr.op, *operands)
        assert isinstance(expr, ex.Call)
        if expr.name == "abs" and not dtypes.is_float(expr.dtype):
            zero = self.math.constant(0, expr.dtype)
            negative = self.math.binary("sub", zero, operands[0])
            return self.math.binary("max", operands[0], negative)
        if expr.name == "sigmoid":
            return self.math.sigmoid(operands[0])
        return self.math.elementary(expr.name, *operands)

    def combined(self, reducer: Reducer, left: list[Value], right: list[Value]) -> list[Value]:
        """The result of a reducer's combiner for two values, or tuples of values."""
        self.slots = dict(zip((*reducer.left, *reducer.right), (*left, *right)))
        lanes = max(each.lanes for each in (*left, *right))
        results = [self.value(each, Point()) for each in reducer.results]
        self.slots = {}
        return [self.math.splat(each, lanes) for each in results]

    def _selected(self, expr: ex.Select, point: Point) -> Value:
        """Selects without reading anything for the branch that is not taken, if that might not
        exist."""
        condition = self.value(expr.condition, point)
        lazy = any(
            isinstance(node, ex.Load) and not self.is_inside(node)
            for branch in (expr.then, expr.otherwise)
            for node in ex.walk(branch)
        )
        if not lazy:
            then, otherwise = self.value(expr.then, point), self.value(expr.otherwise, point)
            return self.math.select(condition, then, otherwise)
        if condition.lanes:
            inverse = self.math.binary("xor", condition, self.math.constant(True, "bool"))
            then = self.value(expr.then, self._masked(point, condition))
            otherwise = self.value(expr.otherwise, self._masked(point, inverse))
            return self.math.select(condition, then, otherwise)
        lanes = point.lanes
        with self.code.branch(condition.name, [Value("", expr.dtype, lanes).type]) as (name,):
            then = self.math.splat(self.value(expr.then, point), lanes)
            self.code.give([(then.name, then.type)])
        with self.code.otherwise():
            otherwise = self.math.splat(self.value(expr.otherwise, point), lanes)
            self.code.give([(otherwise.name, otherwise.type)])
        return Value(name, expr.dtype, lanes)

    def _masked(self, point: Point, condition: Value) -> Point:
        mask = self.math.binary("and", condition, point.mask) if point.mask else condition
        return Point(point.loops, point.vector, point.base, point.lanes, mask)
