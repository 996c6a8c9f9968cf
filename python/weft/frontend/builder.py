# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What rules make ops with: the dialect's own functions, with the types that the dialect infers.

Trivial forms (a reshape to the same shape, a conversion to the same type) give the operand
back, so that rules need not look. Integer bounds are carried along where that is easy: they
tell which index checks can be left out.
"""

from __future__ import annotations

import functools
import keyword
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from weft import _graph_ops as ops
from weft.dialect.making import making
from weft.frontend.bounds import fits, hull, interval
from weft.frontend.dtypes import is_float, is_integer, opmath
from weft.frontend.graph import STOPS_GRADIENT, SUBGRADIENT, Body, Graph, Value, segments
from weft.frontend.lowered import Decline, Fallback
from weft.frontend.number_values import number_value
from weft.frontend.numbers import Number

Scalar = bool | int | float
# The builder of a scan's body, the states ahead of a step, its elements of the sequences and the
# invariants, to the states behind it and its outputs.
Step = Callable[
    ["Builder", Sequence[Value], Sequence[Value], Sequence[Value]],
    tuple[Sequence[Value], Sequence[Value]],
]


def count_windows(size: int, window: int, stride: int, dilation: int) -> int:
    """Whole ones among `size` elements, padding included."""
    return (size - (window - 1) * dilation - 1) // stride + 1


class Builder:
    """The compiler sees no tensor without elements but constants and inputs: what follows from
    them is known here."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.fallbacks: list[Fallback] = []

    def _make(
        self,
        op: Callable[..., Any],
        *given: Any,
        dtype: torch.dtype,
        shape: Sequence[int],
        bounds: tuple[int, int] | None = None,
        extra: dict[str, Any] | None = None,
        **optional: Any,
    ) -> Value:
        """The one result of `op`, a function of the dialect. extra: attributes beside those of the
        op's definition."""
        if 0 in shape and op is not ops.constant:
            return self.constant(0, dtype, shape)
        with making(self.graph):
            result: Value = op(*given, **optional, result_type=(dtype, shape))
        if extra:
            self.graph.nodes[-1].attrs.update(extra)
        result.bounds = bounds
        return result

    # Elementwise

    def unary(self, op: str, x: Value, subgradient: str = "") -> Value:
        function, extra = _function(op), self._kink(subgradient)
        return self._make(function, x, dtype=x.dtype, shape=x.shape, extra=extra)

    def binary(self, op: str, x: Value, y: Value, subgradient: str = "") -> Value:
        assert x.shape == y.shape and x.dtype == y.dtype, (op, x, y)
        function, extra, bounds = _function(op), self._kink(subgradient), interval(op, x, y)
        return self._make(function, x, y, dtype=x.dtype, shape=x.shape, bounds=bounds, extra=extra)

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """x y + z, rounded once: nowhere where PyTorch rounds twice."""
        return self._make(ops.fma, x, y, z, dtype=x.dtype, shape=x.shape)

    def _kink(self, subgradient: str) -> dict[str, str]:
        """subgradient: at the border between two slopes, where it is not what the op's derivative
        has by itself; see compiler/Graph/Derivative.h."""
        return {SUBGRADIENT: subgradient} if subgradient and self.graph.training else {}

    def total(self, terms: Sequence[Value]) -> Value:
        """The sum of the terms, added in their order."""
        return functools.reduce(lambda x, y: self.binary("add", x, y), terms)

    def scalar(self, op: str, x: Value, number: Scalar, subgradient: str = "") -> Value:
        """`binary` with a number on the right."""
        return self.binary(op, x, self.constant(number, x.dtype, x.shape), subgradient)

    def compare(self, predicate: str, x: Value, y: Value | Scalar) -> Value:
        if not isinstance(y, Value):
            y = self.constant(y, x.dtype, x.shape)
        return self._make(ops.cmp, predicate, x, y, dtype=torch.bool, shape=x.shape)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        bounds = hull(x, y)
        return self._make(ops.select, condition, x, y, dtype=x.dtype, shape=x.shape, bounds=bounds)

    def convert(self, x: Value, dtype: torch.dtype) -> Value:
        if x.dtype == dtype:
            return x
        bounds = x.bounds if is_integer(dtype) and fits(x.bounds, dtype) else None
        return self._make(ops.convert, x, dtype=dtype, shape=x.shape, bounds=bounds)

    # Create

    def constant(self, number: Scalar, dtype: torch.dtype, shape: Sequence[int] = ()) -> Value:
        if type(number) is Number:
            return number_value(self, number, dtype, shape)
        value = _element(0 if 0 in shape else number, dtype)
        bounds = (value, value) if is_integer(dtype) else None
        splat = {"splat": _json(value)}
        return self._make(ops.constant, splat, dtype=dtype, shape=shape, bounds=bounds)

    def quotient(self, over: int, under: int, dtype: torch.dtype, shape: Sequence[int]) -> Value:
        """A constant, of numbers that may depend on sizes; so a range of them knows how."""
        rounded = torch.tensor(over / under, dtype=dtype).item()
        made = self.constant(rounded, dtype, shape)
        if self.graph.keeps_trivial:
            self.graph.nodes[-1].attrs["quotient"] = (over, under)
        return made

    def dense(self, tensor: torch.Tensor) -> Value:
        """A small constant tensor."""
        elements = [_json(_element(e, tensor.dtype)) for e in tensor.flatten().tolist()]
        bounds = (min(elements), max(elements)) if elements and is_integer(tensor.dtype) else None
        alike = len(set(map(repr, elements))) == 1
        value = {"splat": elements[0]} if alike else {"dense": elements}
        dtype, shape = tensor.dtype, tensor.shape
        return self._make(ops.constant, value, dtype=dtype, shape=shape, bounds=bounds)

    def iota(self, dtype: torch.dtype, shape: Sequence[int], dim: int) -> Value:
        bounds = (0, max(shape[dim] - 1, 0)) if is_integer(dtype) else None
        return self._make(ops.iota, dim, dtype=dtype, shape=shape, bounds=bounds)

    def philox(self, low: Value, high: Value, key: Value) -> Value:
        """Random bits of the counter (low, high) under the key, all int32."""
        return self._make(ops.philox, low, high, key, dtype=torch.int32, shape=low.shape)

    # Shape

    def broadcast_in_dim(self, x: Value, dims: Sequence[int], shape: Sequence[int]) -> Value:
        is_same = tuple(shape) == x.shape and list(dims) == list(range(x.rank))
        if is_same and not self.graph.keeps_trivial:
            return x
        function = ops.broadcast_in_dim
        return self._make(function, x, dims, dtype=x.dtype, shape=shape, bounds=x.bounds)

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """torch's rule: dims are matched from the last one on."""
        return self.broadcast_in_dim(x, range(len(shape) - x.rank, len(shape)), shape)

    def along(self, x: Value, dim: int, shape: Sequence[int]) -> Value:
        """A vector laid along `dim` of `shape`."""
        return self.broadcast_in_dim(x, [dim], shape)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        if tuple(shape) == x.shape and not self.graph.keeps_trivial:
            return x
        assert math.prod(shape) == x.size, (x, shape)
        return self._make(ops.reshape, x, dtype=x.dtype, shape=shape, bounds=x.bounds)

    def detached(self, x: Value) -> Value:
        """x, a constant to the derivative."""
        if not self.graph.training:
            return x
        extra = {STOPS_GRADIENT: True}
        return self._make(
            ops.reshape, x, dtype=x.dtype, shape=x.shape, bounds=x.bounds, extra=extra
        )

    def with_slopes(
        self,
        value: Value,
        *slopes: tuple[Value, Value | Scalar],
        dims: Sequence[int] = (),
        subgradient: str = "",
    ) -> Value:
        """`value` with the derivative that PyTorch's formula gives: along each x of the pairs
        (x, slope) the slope, summed over `dims`, which x has and `value` has not.

        subgradient: "zero" where nothing passes a slope of zero, not even an infinite cotangent.
        """
        if not self.graph.training:
            return value
        pairs = [
            (x, each if isinstance(each, Value) else self.constant(each, x.dtype, x.shape))
            for x, each in slopes
        ]
        along, by = map(list, zip(*pairs, strict=True))
        return self._make(
            ops.with_slopes,
            value,
            along,
            by,
            sorted(dims),
            dtype=value.dtype,
            shape=value.shape,
            extra=self._kink(subgradient),
        )

    def level(self, x: Value) -> Value:
        """x, whose elements are whole numbers, without a slope; unlike of one that is detached,
        the derivative is zero."""
        return self.unary("trunc", x) if self.graph.training and is_float(x.dtype) else x

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        if list(perm) == list(range(x.rank)):
            return x
        shape = [x.shape[dim] for dim in perm]
        return self._make(ops.transpose, x, perm, dtype=x.dtype, shape=shape, bounds=x.bounds)

    def transpose_of(self, x: Value) -> tuple[Value, list[int]]:
        """What `x` is the transpose of, and by which permutation: itself, if of nothing else."""
        for node in self.graph.nodes:
            if node.op == "weft.transpose" and node.results[0] is x:
                return node.operands[0], node.attrs["perm"]
        return x, list(range(x.rank))

    def slice(self, x: Value, dim: int, start: int, limit: int, stride: int = 1) -> Value:
        """Elements start, start + stride, ... below limit of one dim."""
        if (start, limit, stride) == (0, x.shape[dim], 1) and not self.graph.keeps_trivial:
            return x
        starts, limits, strides = [0] * x.rank, list(x.shape), [1] * x.rank
        starts[dim], limits[dim], strides[dim] = start, limit, stride
        shape = list(x.shape)
        shape[dim] = -(-(limit - start) // stride)
        places = starts, limits, strides
        return self._make(ops.slice, x, *places, dtype=x.dtype, shape=shape, bounds=x.bounds)

    def pad(self, x: Value, low: Sequence[int], high: Sequence[int], number: Scalar) -> Value:
        """Low and high may be negative: in a program of one size the operand is sliced first."""
        if not self.graph.keeps_trivial:
            for dim, size in enumerate(x.shape):
                x = self.slice(x, dim, max(-low[dim], 0), size - max(-high[dim], 0))
            low, high = [max(n, 0) for n in low], [max(n, 0) for n in high]
            if not any(low) and not any(high):
                return x
        shape = [n + a + b for n, a, b in zip(x.shape, low, high)]
        value = self.constant(number, x.dtype)
        if x.size == 0:
            return self.broadcast(value, shape)
        return self._make(ops.pad, x, value, low, high, dtype=x.dtype, shape=shape)

    def concat(self, xs: Sequence[Value], dim: int) -> Value:
        shape = list(xs[0].shape)
        shape[dim] = sum(x.shape[dim] for x in xs)
        xs = [x for x in xs if x.size] or xs
        if len(xs) == 1:
            return xs[0]
        return self._make(ops.concat, xs, dim, dtype=xs[0].dtype, shape=shape, bounds=hull(*xs))

    def reverse(self, x: Value, dims: Sequence[int]) -> Value:
        return self._make(ops.reverse, x, dims, dtype=x.dtype, shape=x.shape, bounds=x.bounds)

    # Reduce

    def reduce(
        self, kind: str, x: Value, dims: Sequence[int], keep: bool = False, subgradient: str = ""
    ) -> Value:
        """keep: the reduced dims stay, of size 1."""
        if not dims:
            return x
        shape = [n for dim, n in enumerate(x.shape) if dim not in dims]
        if x.size == 0:
            result = self.constant(_identity(kind, x.dtype), x.dtype, shape)
        else:
            extra = self._kink(subgradient)
            result = self._make(
                ops.reduce, kind, x, sorted(dims), dtype=x.dtype, shape=shape, extra=extra
            )
        if not keep:
            return result
        return self.reshape(result, [1 if d in dims else n for d, n in enumerate(x.shape)])

    def arg_reduce(self, kind: str, x: Value, dim: int) -> Value:
        shape = [n for d, n in enumerate(x.shape) if d != dim]
        bounds = (0, max(x.shape[dim] - 1, 0))
        return self._make(
            ops.arg_reduce, kind, x, dim, dtype=torch.int64, shape=shape, bounds=bounds
        )

    def cumulative(self, kind: str, x: Value, dim: int) -> Value:
        wide = self.convert(x, opmath(x.dtype))  # half precision drifts, where it can be added
        result = self._make(ops.cumulative, kind, wide, dim, dtype=wide.dtype, shape=x.shape)
        return self.convert(result, x.dtype)

    def reduce_window(self, kind: str, x: Value, window, strides, dilations) -> Value:
        shape = list(map(count_windows, x.shape, window, strides, dilations))
        form = window, strides, dilations
        return self._make(ops.reduce_window, kind, x, *form, dtype=x.dtype, shape=shape)

    # Contract

    def grouped_dot(self, rows: Value, weights: Value, ends: Value) -> Value:
        """rows: (s, k); weights: (g, n, k); ends: (g). To (s, n)."""
        shape = [rows.shape[0], weights.shape[1]]
        return self._make(ops.grouped_dot, rows, weights, ends, dtype=rows.dtype, shape=shape)

    def dot(
        self, x: Value, y: Value, contract, batch=((), ()), dtype: torch.dtype | None = None
    ) -> Value:
        """contract, batch: dims of x, dims of y. dtype: of a result in float32, if given."""
        gone = [(*contract[side], *batch[side]) for side in (0, 1)]
        free = [n for z, out in zip((x, y), gone) for d, n in enumerate(z.shape) if d not in out]
        shape, dtype = [*(x.shape[d] for d in batch[0]), *free], dtype or x.dtype
        if x.size * y.size == 0:
            return self.constant(0, dtype, shape)
        return self._make(ops.dot_general, x, y, *batch, *contract, dtype=dtype, shape=shape)

    def conv(self, x: Value, weight: Value, strides, low, high, dilations, groups) -> Value:
        spatial = [
            count_windows(n + a + b, k, s, d)
            for n, k, s, a, b, d in zip(
                x.shape[2:], weight.shape[2:], strides, low, high, dilations
            )
        ]
        shape = [x.shape[0], weight.shape[0], *spatial]
        if x.size * weight.size == 0:
            return self.constant(0, x.dtype, shape)
        form = strides, low, high, dilations, groups
        return self._make(ops.conv, x, weight, *form, dtype=x.dtype, shape=shape)

    # Index and effects

    def gather(self, x: Value, indices: Sequence[Value], dims: Sequence[int]) -> Value:
        kept = [n for d, n in enumerate(x.shape) if d not in dims]
        shape = [*indices[0].shape, *kept]
        return self._make(ops.gather, x, indices, dims, dtype=x.dtype, shape=shape, bounds=x.bounds)

    def scatter(
        self,
        x: Value,
        updates: Value,
        indices: Sequence[Value],
        dims: Sequence[int],
        kind: str = "set",
    ) -> Value:
        """updates: (*indices, *dims of x that are not in `dims`)."""
        wide = x.dtype if kind == "set" else opmath(x.dtype)
        if x.dtype != wide:
            x, updates, dtype = self.convert(x, wide), self.convert(updates, wide), x.dtype
            return self.convert(self.scatter(x, updates, indices, dims, kind), dtype)
        kept = [n for d, n in enumerate(x.shape) if d not in dims]
        assert updates.shape == (*indices[0].shape, *kept), (x, updates, indices, dims)
        if updates.size == 0:
            return x
        places = indices, dims
        return self._make(ops.scatter, kind, x, updates, *places, dtype=x.dtype, shape=x.shape)

    def sort(self, x: Value, dim: int, descending: bool, count: int) -> tuple[Value, Value]:
        """The first `count` values in order, and their positions."""
        shape = [count if d == dim else n for d, n in enumerate(x.shape)]
        if 0 in shape:
            return self.constant(0, x.dtype, shape), self.constant(0, torch.int64, shape)
        types = [(x.dtype, shape), (torch.int64, shape)]
        with making(self.graph):
            values, indices = ops.sort(x, dim, descending, count, result_type=types)
        values.bounds, indices.bounds = x.bounds, (0, max(x.shape[dim] - 1, 0))
        return values, indices

    def check(self, condition: Value, message: str) -> None:
        """weft.assert, on one element."""
        if condition.rank:
            condition = self.reduce("all", condition, range(condition.rank))
        with making(self.graph):
            ops.assert_(condition, message, result_type=[])

    def torch_fallback(
        self,
        operands: Sequence[Value],
        target: str,
        arguments: str,
        types: Sequence[tuple[torch.dtype, Sequence[int]]],
    ) -> list[Value]:
        """Results of the op `target` of PyTorch, which the host runs."""
        with making(self.graph):
            results: list[Value] = ops.torch_fallback(
                operands, target, arguments, result_type=list(types)
            )
        return results

    # Recurrence

    def scan(
        self,
        states: Sequence[Value],
        sequences: Sequence[Value],
        invariants: Sequence[Value],
        length: int,
        step: Step,
        reverse: bool = False,
    ) -> tuple[list[Value], list[Value]]:
        """sequences: (length, ...) each. To the last states, and the outputs of all steps,
        (length, ...) each. reverse: from the last step to the first."""
        graph = Graph(self.graph.training, self.graph.constant, location=self.graph.location)
        elements = [Value(x.dtype, x.shape[1:], x.bounds) for x in sequences]
        before = [Value(x.dtype, x.shape) for x in states]
        same = [Value(x.dtype, x.shape, x.bounds) for x in invariants]
        after, outputs = step(Builder(graph), before, elements, same)
        body = Body([*before, *elements, *same], graph.nodes, [*after, *outputs])
        attrs = {
            "length": length,
            "reverse": reverse,
            "operandSegmentSizes": segments(len(states), len(sequences), len(invariants)),
        }
        types = [(x.dtype, x.shape) for x in after]
        types += [(x.dtype, (length, *x.shape)) for x in outputs]
        if not any(0 not in shape for _, shape in types):
            results = [self.constant(0, dtype, shape) for dtype, shape in types]
            return results[: len(states)], results[len(states) :]
        operands = [*states, *sequences, *invariants]
        results = self.graph.append("weft.scan", operands, attrs, types, body)
        return results[: len(states)], results[len(states) :]

    # Composites

    def softmax(self, x: Value, dim: int, log: bool = False) -> Value:
        function = ops.log_softmax if log else ops.softmax
        return self._make(function, x, dim, dtype=x.dtype, shape=x.shape)

    def layer_norm(
        self, x: Value, weight: Value | None, bias: Value | None, dims: int, eps: float
    ) -> Value:
        affine = {"weight": weight, "bias": bias}
        return self._make(ops.layer_norm, x, dims, eps, **affine, dtype=x.dtype, shape=x.shape)

    def group_norm(
        self, x: Value, weight: Value | None, bias: Value | None, groups: int, eps: float
    ) -> Value:
        affine = {"weight": weight, "bias": bias}
        return self._make(ops.group_norm, x, groups, eps, **affine, dtype=x.dtype, shape=x.shape)

    def rms_norm(self, x: Value, weight: Value | None, dims: int, eps: float) -> Value:
        return self._make(ops.rms_norm, x, dims, eps, weight=weight, dtype=x.dtype, shape=x.shape)

    def batch_norm(self, x, mean, variance, weight, bias, eps: float) -> Value:
        affine = {"weight": weight, "bias": bias}
        statistics = mean, variance
        return self._make(
            ops.batch_norm, x, *statistics, eps, **affine, dtype=x.dtype, shape=x.shape
        )

    def gelu(self, x: Value, kind: str) -> Value:
        return self._make(ops.gelu, kind, x, dtype=x.dtype, shape=x.shape)

    def silu(self, x: Value) -> Value:
        return self._make(ops.silu, x, dtype=x.dtype, shape=x.shape)

    def attention(self, q, k, v, mask: Value | None, causal: bool, scale: float) -> Value:
        shape = [*q.shape[:-1], v.shape[-1]]
        return self._make(
            ops.attention, q, k, v, causal, scale, mask=mask, dtype=q.dtype, shape=shape
        )


def _function(op: str) -> Callable[..., Any]:
    """The dialect's function for an op of that name."""
    function: Callable[..., Any] = getattr(ops, f"{op}_" if keyword.iskeyword(op) else op)
    return function


def _identity(kind: str, dtype: torch.dtype) -> Scalar:
    """What no elements reduce to."""
    if kind in ("max", "min"):
        info = torch.iinfo(dtype) if is_integer(dtype) else None
        low, high = (info.min, info.max) if info else (-math.inf, math.inf)
        return low if kind == "max" else high
    return int(kind in ("prod", "all"))


def _element(number: Scalar, dtype: torch.dtype) -> Scalar:
    if dtype == torch.bool:
        return bool(number)
    if is_float(dtype):
        number = float(number)
        beyond = math.isfinite(number) and abs(number) > torch.finfo(dtype).max
        return torch.tensor(number, dtype=torch.float64).to(dtype).item() if beyond else number
    if not math.isfinite(number):
        raise Decline(f"{number} does not fit {dtype}")
    element = int(number)
    if not fits((element, element), dtype):
        raise Decline(f"{number} does not fit {dtype}")
    return element


def _json(element: Scalar) -> Scalar | str:
    """JSON has no infinities: "inf", "-inf" and "nan" stand for them."""
    if isinstance(element, float) and not math.isfinite(element):
        return repr(element)
    return element
