# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`te.build` of formulas with `te.var`: a function of arrays of any size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from weft import errors
from weft.te.building import Function, build, checked_arguments
from weft.te.errors import ScheduleError, TEError
from weft.te.expressions import Var
from weft.te.families import Family, Member
from weft.te.schedules import Schedule
from weft.te.tensors import Tensor

_MOST = 256  # functions that are kept; those called last


class SizedFunction:
    """A kernel for each of the sizes that the function is called with, which is compiled by the
    first call of that size. It is called like a `te.Function`; variables that are arguments are
    given as numbers.

    Attributes: name, args, schedule.
    """

    def __init__(
        self, schedule: Schedule, args: Sequence[Any], name: str, default: bool | None
    ) -> None:
        assert schedule.family is not None
        self.name, self.args, self.schedule, self._default = name, list(args), schedule, default
        self.__name__ = name
        self._family: Family = schedule.family
        self._functions: OrderedDict[tuple[int, ...], Function] = OrderedDict()
        _check(schedule, self._family, self.args, name)
        self._results = [
            number
            for number, each in enumerate(args)
            if isinstance(each, Tensor) and each.op.body is not None
        ]

    def __call__(self, *given: Any) -> Any:
        """Raises: errors.ArgumentError; TEError and ScheduleError if formulas or schedule are
        illegal for the arrays' sizes."""
        args = self.args
        if len(given) != len(args):
            args = [each for n, each in enumerate(args) if n not in self._results]
        if len(given) != len(args):
            names = [each.name for each in self.args]
            raise errors.ArgumentError(
                f"{self.name}: expected {len(names)} arguments ({', '.join(names)}), or the "
                f"{len(args)} that are read, found {len(given)}"
            )
        shapes, numbers = [], {}
        for each, value in zip(args, given):
            if self._family.is_size(each):
                numbers[each] = _number(each, value)
            elif isinstance(each, Tensor) and hasattr(value, "shape"):
                shapes.append((each, tuple(value.shape)))
        function = self._at(self._family.values(self.name, shapes, numbers))
        like_numpy = any(isinstance(value, np.ndarray) for value in given)
        return function(
            *(
                _scalar(each, value, like_numpy) if isinstance(each, Var) else value
                for each, value in zip(args, given)
                if not self._family.is_size(each)
            )
        )

    def at(self, **sizes: int) -> Function:
        """The compiled function for these sizes, which are given by the variables' names.

        Raises: TEError, ScheduleError.
        """
        known = {each.name: each for each in self._family.sizes}
        if set(sizes) != set(known):
            raise TEError(
                f"{self.name}.at: expected the sizes {', '.join(known) or 'of none'}, found "
                f"{', '.join(sizes) or 'none'}"
            )
        return self._at({known[name]: _number(known[name], each) for name, each in sizes.items()})

    def _at(self, values: Mapping[Var, int]) -> Function:
        key = tuple(values[each] for each in self._family.sizes)
        if key not in self._functions:
            self._functions[key] = self._built(values)
            if len(self._functions) > _MOST:
                self._functions.popitem(last=False)
        self._functions.move_to_end(key)
        return self._functions[key]

    def _built(self, values: Mapping[Var, int]) -> Function:
        member = self._family.at(values)
        schedule = Schedule(member.outputs)
        try:
            schedule.load(self.schedule.save())
            args = _arguments(member, self._family, self.args)
            return build(schedule, args, self.name, default=self._default)
        except ScheduleError as error:
            at = ", ".join(f"{each.name} = {values[each]}" for each in self._family.sizes)
            raise ScheduleError(error.axis, f"{error.reason} (for {at})", error.remedy) from None

    def __repr__(self) -> str:
        return f"<te.SizedFunction {self.name}({', '.join(each.name for each in self.args)})>"


def _check(schedule: Schedule, family: Family, args: Sequence[Any], name: str) -> None:
    """Raises: TEError for arguments that are wrong for all sizes."""
    for each in args:
        if not isinstance(each, (Tensor, Var)):
            raise TEError(f"expected tensors and variables as arguments, found {each!r}")
        if isinstance(each, Var) and each not in {*family.sizes, *family.model.scalars}:
            raise TEError(f"{each.name} is an argument and nothing is computed from it")
    checked_arguments(schedule, _arguments(family.model, family, args), name)


def _arguments(member: Member, family: Family, args: Sequence[Any]) -> list[Tensor]:
    """The arguments of a member, without the sizes, which the member knows."""
    return [
        member.scalars[each] if isinstance(each, Var) else member.add(each)
        for each in args
        if not family.is_size(each)
    ]


def _number(variable: Var, value: Any) -> int:
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise errors.ArgumentError(
            f"argument {variable.name!r}: expected a size of at least 0, found {value!r}"
        )
    return value


def _scalar(variable: Var, value: Any, like_numpy: bool) -> Any:
    """A number as an array with no dimensions."""
    if not isinstance(value, (bool, int, float)):
        return value
    if like_numpy and variable.dtype != "bfloat16":
        return np.array(value, variable.dtype)
    return torch.tensor(value, dtype=getattr(torch, variable.dtype))
