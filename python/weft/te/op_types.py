# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of operations that code for TVM's te asks for, as `isinstance(z.op, te.ComputeOp)`."""

from __future__ import annotations

from typing import Any

from weft.te.tensors import Operation


class _OfOperations(type):
    """All operations are `Operation`s, and are told apart by what they have."""

    def __instancecheck__(cls, op: Any) -> bool:
        return isinstance(op, Operation) and cls.has(op)

    def has(cls, op: Operation) -> bool:
        return False


class PlaceholderOp(metaclass=_OfOperations):
    """The op of a placeholder, whose tensor the caller gives."""

    @classmethod
    def has(cls, op: Operation) -> bool:
        return op.body is None


class ScanOp(metaclass=_OfOperations):
    """The op that `te.scan` makes."""

    @classmethod
    def has(cls, op: Operation) -> bool:
        return op.scan is not None


class ComputeOp(metaclass=_OfOperations):
    """The op that `te.compute` makes."""

    @classmethod
    def has(cls, op: Operation) -> bool:
        return op.body is not None and op.scan is None


class TensorComputeOp(metaclass=_OfOperations):
    """There are none, as of the two types below."""


class ExternOp(metaclass=_OfOperations):
    """There are none: a kernel calls no function of the host."""


class HybridOp(metaclass=_OfOperations):
    """There are none: formulas are made by te.compute."""
