# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of operations for code that was written for TVM: `isinstance(z.op, te.ComputeOp)`."""

from __future__ import annotations

from typing import Any

from weft.te.tensors import Operation


class _OfOperations(type):
    """Decides `isinstance` by what an operation has, since all are `Operation`s."""

    def __instancecheck__(cls, op: Any) -> bool:
        return isinstance(op, Operation) and cls.has(op)

    def has(cls, op: Operation) -> bool:
        return False


class PlaceholderOp(metaclass=_OfOperations):
    """The operation of a placeholder, whose tensor the caller gives."""

    @classmethod
    def has(cls, op: Operation) -> bool:
        return op.body is None


class ScanOp(metaclass=_OfOperations):
    """The operation that `te.scan` makes."""

    @classmethod
    def has(cls, op: Operation) -> bool:
        return op.scan is not None


class ComputeOp(metaclass=_OfOperations):
    """The operation that `te.compute` makes."""

    @classmethod
    def has(cls, op: Operation) -> bool:
        return op.body is not None and op.scan is None


class TensorComputeOp(metaclass=_OfOperations):
    """No operation is of this type, nor of the two types below."""


class ExternOp(metaclass=_OfOperations):
    """No operation is of this type: a kernel calls no function of the host."""


class HybridOp(metaclass=_OfOperations):
    """No operation is of this type: formulas are made by te.compute."""
