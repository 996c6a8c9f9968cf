# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ops cost: arithmetic, bytes that are touched, and the time that these need at least.

Counts are those of an op on its own: fusion saves bytes, and layouts move some. A multiply-add is
two operations, any other function of an element is one.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from weft.ir.types import TensorType
from weft.ir.values import Operation, Value
from weft.reporting import roofline


@dataclass(frozen=True)
class Cost:
    """flops: operations. bytes: read and written, each once; no more of a tensor than is touched.
    known: whether that is all, which it is not where PyTorch runs an op."""

    flops: int = 0
    bytes: int = 0
    known: bool = True

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes, self.known and other.known)

    def seconds(self, threads: int) -> float:
        """What this machine, measured once in a process, needs at least."""
        return roofline.least_seconds(self.flops, self.bytes, threads)


def cost(op: Operation) -> Cost:
    """The cost of an op of the graph, of a loop nest of linalg, or of a call: of what it calls."""
    name = op.full_name
    if name == "func.call":
        callee = op.module[op.attributes["callee"]]
        inner = sum_of(callee.body)
        if "weft.kernel" in callee.attributes:  # between its ops nothing goes to memory
            inputs = sum(touched(value) for value in callee.params)
            return Cost(inner.flops, inputs + _bytes(op.results), inner.known)
        return inner
    if name == "linalg.generic":
        return _loops(op)
    if name in _FREE or not name.startswith("weft."):
        return Cost()
    if name == "weft.torch_fallback":
        return Cost(0, _bytes(op.operands) + _bytes(op.results), False)
    count = _FLOPS.get(op.name, _elementwise)
    return Cost(int(count(op, op.attributes)), _moved(op))


def sum_of(ops: Any) -> Cost:
    total = Cost()
    for op in ops:
        total += cost(op)
    return total


def touched(value: Value) -> int:
    """The bytes of a value that its users touch at most."""
    whole = _bytes([value])
    parts = 0
    for op, number in value.uses:
        if op.full_name in ("weft.gather", "weft.slice") and number == 0:
            parts += _elements(op.results[0]) * _width(value)
        elif op.full_name == "tensor.extract":
            parts += _steps(op.parent) * _width(value)
        elif op.full_name in ("weft.reshape", "weft.transpose"):
            parts += touched(op.result)
        else:
            return whole
    return min(parts, whole)


_FREE = {"weft.constant", "weft.iota", "weft.reshape", "weft.advance", "weft.assert"}
# Operations for each element, in the steps that the op is defined by.
_OF_EACH = {
    "batch_norm": 4,
    "gelu": 5,
    "group_norm": 8,
    "layer_norm": 8,
    "log_softmax": 5,
    "philox": 70,
    "rms_norm": 5,
    "sigmoid": 4,
    "silu": 5,
    "softmax": 5,
}
_VIEWS = ("broadcast_in_dim", "concat", "convert", "gather", "pad", "relayout", "reverse", "slice")


def _elements(value: Value) -> int:
    return math.prod(value.type.shape) if isinstance(value.type, TensorType) else 0


def _width(value: Value) -> int:
    return torch.empty((), dtype=value.type.torch_dtype).element_size()


def _bytes(values: list[Value]) -> int:
    return sum(
        _elements(value) * _width(value) for value in values if isinstance(value.type, TensorType)
    )


def _moved(op: Operation) -> int:
    operands, written = op.operands, _bytes(op.results)
    if op.name in ("gather", "slice"):
        return written * 2 + _bytes(operands[1:])
    if op.name == "scatter":  # what is updated is read and written; the rest is as it was
        updated = _bytes(operands[1:2])
        return 2 * _bytes(operands[:1]) + updated + _bytes(operands[2:])
    return _bytes(list(dict.fromkeys(operands))) + written


def _elementwise(op: Operation, attributes: dict[str, Any]) -> int:
    each = _OF_EACH.get(op.name, 2 if op.name == "fma" else 1)
    return each * sum(map(_elements, op.results))


def _nothing(op: Operation, attributes: dict[str, Any]) -> int:
    return 0


def _read(op: Operation, attributes: dict[str, Any]) -> int:
    return _elements(op.operands[0])


def _dot(op: Operation, attributes: dict[str, Any]) -> int:
    summed = math.prod(op.operands[0].shape[dim] for dim in attributes["lhsContract"])
    return 2 * summed * sum(map(_elements, op.results))


def _conv(op: Operation, attributes: dict[str, Any]) -> int:
    return 2 * math.prod(op.operands[1].shape[1:]) * _elements(op.result)


def _winograd(op: Operation, attributes: dict[str, Any]) -> int:
    return 2 * op.operands[0].shape[1] * 4 * _elements(op.result)  # 16 products for 4 results


def _attention(op: Operation, attributes: dict[str, Any]) -> int:
    query, key, value = op.operands[:3]
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    return scores * (2 * query.shape[-1] + 2 * value.shape[-1] + 5)


def _grouped(op: Operation, attributes: dict[str, Any]) -> int:
    return 2 * op.operands[0].shape[-1] * _elements(op.result)


def _window(op: Operation, attributes: dict[str, Any]) -> int:
    return math.prod(attributes["window"]) * _elements(op.results[0])


def _sort(op: Operation, attributes: dict[str, Any]) -> int:
    size = op.operands[0].shape[attributes["dim"]] if op.operands[0].shape else 1
    return _elements(op.operands[0]) * max(1, math.ceil(math.log2(max(size, 1))))


_FLOPS: dict[str, Callable[[Operation, dict[str, Any]], int]] = {
    **dict.fromkeys((*_VIEWS, "transpose"), _nothing),
    **dict.fromkeys(("reduce", "arg_reduce", "cumulative"), _read),
    "dot_general": _dot,
    "multi_dot": _dot,
    "conv": _conv,
    "winograd_conv": _winograd,
    "attention": _attention,
    "grouped_dot": _grouped,
    "reduce_window": _window,
    "scatter": lambda op, attributes: _elements(op.operands[1]),
    "sort": _sort,
}


def _steps(op: Operation) -> int:
    """The iterations of a linalg.generic, whose loops have the sizes of what they index."""
    sizes: dict[str, int] = {}
    for value, place in zip(op.operands, op.attributes["indexing_maps"], strict=True):
        dims = re.findall(r"d\d+", str(place).partition("->")[2])
        for dim, size in zip(dims, value.type.shape):
            sizes.setdefault(dim, size)
    return math.prod(sizes.values())


def _loops(op: Operation) -> Cost:
    """Steps times the arithmetic of each."""
    body = op.blocks[0].ops
    each = sum(
        each.full_name.startswith(("arith.", "math.")) and each.full_name != "arith.constant"
        for each in body
    )
    return Cost(each * _steps(op), _bytes(op.operands))
