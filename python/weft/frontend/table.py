# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table from ATen overloads to rules, and what a rule sees of the call it lowers.

A rule takes a `Site` and the call's arguments, tensors as `Value`s, and gives the results
(a Value, or a tuple of them with None for results that it does not make because nothing
reads them). It raises `Decline` for arguments it does not cover; the call then goes through
its core decomposition, if that has the values of PyTorch's kernel, or runs in PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as Promotion
from torch._prims_common import elementwise_dtypes

from weft.frontend.builder import Builder, Scalar
from weft.frontend.dtypes import opmath
from weft.frontend.graph import Value
from weft.frontend.lowered import Decline
from weft.frontend.numbers import Number
from weft.frontend.strides import storage_of

Rule = Callable[..., Any]
VARYING = "weft_varying"  # what `Site.varying` is among a node's facts
TABLE: dict[str, Rule] = {}
CHECKS: dict[str, Rule] = {}


def lowers(*targets: str) -> Callable[[Rule], Rule]:
    """Enters a rule for overloads such as "add.Tensor", of namespace aten, or with another
    namespace ahead."""

    return entering(TABLE, targets)


def checks(*targets: str) -> Callable[[Rule], Rule]:
    """Enters what asserts the values that an overload takes, where it is lowered by a rule or a
    decomposition that does not."""
    return entering(CHECKS, targets)


def entering(table: dict[str, Rule], targets: Sequence[str]) -> Callable[[Rule], Rule]:
    """A decorator that enters a rule into a table under overloads' names, each once."""

    def enter(rule: Rule) -> Rule:
        for target in targets:
            name = target if target.count(".") == 2 else f"aten.{target}"
            assert name not in table, name
            table[name] = rule
        return rule

    return enter


@dataclass
class Site:
    """One call of an overload.

    target: its name. node: where it stands. results: torch's own meta values, flattened. used:
    the numbers of the results that something reads. inputs: the storages of the program's.
    """

    builder: Builder
    target: str
    node: torch.fx.Node
    results: Sequence[torch.Tensor]
    used: frozenset[int]
    inputs: Set[int]

    @property
    def dtype(self) -> torch.dtype:
        return self.results[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.results[0].shape)

    @property
    def lying(self) -> torch.Tensor:
        """The first argument as it lies in memory: torch's meta value."""
        return self.node.args[0].meta["val"]

    @property
    def varying(self) -> frozenset[int]:
        """In a program for a range of sizes: the dims of which the first argument or the result has
        sizes that are symbols."""
        return self.node.meta.get(VARYING, frozenset())

    @property
    def shows_input(self) -> bool:
        """Whether the first argument shows an input's memory."""
        return storage_of(self.lying) in self.inputs

    def only(self, result: int) -> None:
        """Declines if anything but one of the results is read."""
        if self.used - {result}:
            raise Decline(f"more than result {result} of {self.target} is used")

    def operand(
        self, x: Value | Scalar, dtype: torch.dtype, shape: Sequence[int] | None = None
    ) -> Value:
        """A tensor or number cast to `dtype` and broadcast to `shape` (the result's)."""
        shape = self.shape if shape is None else tuple(shape)
        if not isinstance(x, Value):
            return self.builder.constant(x, dtype, shape)
        return self.builder.broadcast(self.builder.convert(x, dtype), shape)

    def promoted(
        self,
        *operands: Value | Scalar,
        kind: Promotion = Promotion.DEFAULT,
        exact: Collection[int] = (),
    ):
        """The operands in torch's computation type for `kind`, in the result's shape.

        Where that is wider than their common type, operands of other types, numbers among them, are
        rounded to the common one ahead. exact: those that are not, if they have no dims: as
        TensorIterator's `original_scalar_value` reads them.
        """
        dtype = computation_dtype(*operands, kind=kind)
        common = computation_dtype(*operands, kind=Promotion.NO_OPMATH)
        if opmath(common) != dtype or common == dtype:
            return [self.operand(x, dtype) for x in operands]
        rounded = (
            x if n in exact and not getattr(x, "rank", 0) else self.rounded(x, common)
            for n, x in enumerate(operands)
        )
        return [self.operand(x, dtype) for x in rounded]

    def rounded(self, x: Value | Scalar, dtype: torch.dtype) -> Value | Scalar:
        """The value or number, rounded to `dtype`."""
        if isinstance(x, Value):
            return self.builder.convert(x, dtype)
        if isinstance(x, Number):
            return self.operand(x, dtype)
        return torch.tensor(float(x), dtype=dtype).item() if dtype.is_floating_point else x

    def as_stored(self, x: Value) -> Value:
        """x rounded as the result's type rounds: a step of an eager kernel that computes in it."""
        return self.builder.convert(self.builder.convert(x, self.dtype), x.dtype)

    def finish(self, x: Value) -> Value:
        """Casts what was computed to the type that torch gives the result."""
        return self.builder.convert(x, self.dtype)


def computation_dtype(*operands: Value | Scalar, kind: Promotion) -> torch.dtype:
    forms = tuple(_form(x) for x in operands if x is not None)
    return _promoted(forms, kind, torch.get_default_dtype())


def _form(x: Value | Scalar) -> type | tuple[torch.dtype, bool]:
    """Promotion asks only for the type, and of a tensor whether it has dims."""
    if isinstance(x, Value):
        return x.dtype, x.rank > 0
    return type(x.value) if isinstance(x, Number) else type(x)


@functools.cache
def _promoted(
    forms: tuple[type | tuple[torch.dtype, bool], ...], kind: Promotion, default: torch.dtype
) -> torch.dtype:
    """default: torch's type of floats, on which promotion depends."""
    proxies = [
        torch.empty((1,) if form[1] else (), dtype=form[0], device="meta")
        if isinstance(form, tuple)
        else form(1)
        for form in forms
    ]
    return elementwise_dtypes(*proxies, type_promotion_kind=kind)[0]


def dim_of(dim: int, rank: int) -> int:
    """A dim counted from the front."""
    return dim % max(rank, 1)


def dims_of(dims: int | Sequence[int] | None, rank: int) -> list[int]:
    """Dims counted from the front, in order; None or nothing means all of them."""
    if isinstance(dims, int):
        dims = [dims]
    if not dims:
        return list(range(rank))
    return sorted(dim_of(dim, rank) for dim in dims) if rank else []
