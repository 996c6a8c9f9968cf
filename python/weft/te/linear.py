# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices as linear forms: a sum of atoms, multiplied by integers, and a constant.

An atom is an axis, or the quotient or remainder of a form by a positive integer, which fused axes
produce. Forms with equal values are usually equal: quotients and remainders that the ranges of the
axes decide are simplified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from weft.te.expressions import Axis, Binary, Cast, Const, Expr


@dataclass(frozen=True)
class Quotient:
    """floor(form / divisor)."""

    form: Linear
    divisor: int


@dataclass(frozen=True)
class Remainder:
    """form mod divisor, not negative."""

    form: Linear
    divisor: int


class AxisAtom:
    """An axis as an atom. Axes are compared by identity."""

    __slots__ = ("axis",)

    def __init__(self, axis: Axis) -> None:
        self.axis = axis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AxisAtom) and other.axis is self.axis

    def __hash__(self) -> int:
        return id(self.axis)


Atom = AxisAtom | Quotient | Remainder
Extents = Callable[[Axis], int]


class Linear:
    """An immutable linear form. terms: atoms with their coefficients, which are not zero."""

    __slots__ = ("terms", "constant", "_hash")

    def __init__(self, terms: Mapping[Atom, int] | None = None, constant: int = 0) -> None:
        self.terms = {atom: c for atom, c in (terms or {}).items() if c}
        self.constant = constant
        self._hash = hash((frozenset(self.terms.items()), constant))

    @classmethod
    def of(cls, axis: Axis) -> Linear:
        return cls({AxisAtom(axis): 1})

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Linear)
            and self.constant == other.constant
            and self.terms == other.terms
        )

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.constant + other)
        terms = dict(self.terms)
        for atom, c in other.terms.items():
            terms[atom] = terms.get(atom, 0) + c
        return Linear(terms, self.constant + other.constant)

    def __mul__(self, factor: int) -> Linear:
        return Linear({atom: c * factor for atom, c in self.terms.items()}, self.constant * factor)

    def __sub__(self, other: Linear | int) -> Linear:
        return self + (other * -1 if isinstance(other, Linear) else -other)

    def axes(self) -> set[Axis]:
        found: set[Axis] = set()
        for atom in self.terms:
            found |= {atom.axis} if isinstance(atom, AxisAtom) else atom.form.axes()
        return found

    def coefficient(self, axis: Axis) -> int | None:
        """By how much one step of the axis changes the form; None if that depends on the axis'
        value."""
        if any(not isinstance(a, AxisAtom) and axis in a.form.axes() for a in self.terms):
            return None
        return self.terms.get(AxisAtom(axis), 0)

    def range(self, extents: Extents) -> tuple[int, int]:
        """The least and the greatest value, or wider bounds."""
        low = high = self.constant
        for atom, c in self.terms.items():
            least, most = atom_range(atom, extents)
            low += c * (least if c > 0 else most)
            high += c * (most if c > 0 else least)
        return low, high

    def substituted(self, values: Mapping[Axis, Linear], extents: Extents) -> Linear:
        result = Linear(None, self.constant)
        for atom, c in self.terms.items():
            if isinstance(atom, AxisAtom):
                value = values.get(atom.axis)
                result = result + (Linear({atom: 1}) if value is None else value) * c
            else:
                form = atom.form.substituted(values, extents)
                make = quotient if isinstance(atom, Quotient) else remainder
                result = result + make(form, atom.divisor, extents) * c
        return result


def atom_range(atom: Atom, extents: Extents) -> tuple[int, int]:
    if isinstance(atom, AxisAtom):
        return 0, max(extents(atom.axis) - 1, 0)
    low, high = atom.form.range(extents)
    if isinstance(atom, Quotient):
        return low // atom.divisor, high // atom.divisor
    return 0, min(atom.divisor - 1, high) if low >= 0 else atom.divisor - 1


def _parted(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    """Splits the form into a multiple of the divisor and the rest."""
    multiple = {atom: c for atom, c in form.terms.items() if c % divisor == 0}
    rest = {atom: c for atom, c in form.terms.items() if c % divisor}
    constant = form.constant // divisor * divisor
    return Linear(multiple, constant), Linear(rest, form.constant - constant)


def quotient(form: Linear, divisor: int, extents: Extents) -> Linear:
    multiple, rest = _parted(form, divisor)
    whole = Linear(
        {atom: c // divisor for atom, c in multiple.terms.items()}, multiple.constant // divisor
    )
    low, high = rest.range(extents)
    if low // divisor == high // divisor:
        return whole + low // divisor
    return whole + Linear({Quotient(rest, divisor): 1})


def remainder(form: Linear, divisor: int, extents: Extents) -> Linear:
    _, rest = _parted(form, divisor)
    low, high = rest.range(extents)
    if low // divisor == high // divisor:
        return rest - low // divisor * divisor
    return Linear({Remainder(rest, divisor): 1})


def linear(expr: Expr, values: Mapping[Axis, Linear], extents: Extents) -> Linear | None:
    """An index expression as a form, with axes replaced by `values`; None if it is not linear."""
    if isinstance(expr, Axis):
        return values.get(expr, Linear.of(expr))
    if isinstance(expr, Const):
        return Linear(None, int(expr.value)) if expr.dtype != "bool" else None
    if isinstance(expr, Cast):
        wide = expr.dtype == "int64" and expr.value.dtype == "int64"
        return linear(expr.value, values, extents) if wide else None
    if not isinstance(expr, Binary) or expr.dtype != "int64":
        return None
    lhs, rhs = linear(expr.lhs, values, extents), linear(expr.rhs, values, extents)
    if lhs is None or rhs is None:
        return None
    return _combined(expr.op, lhs, rhs, extents)


def _combined(op: str, lhs: Linear, rhs: Linear, extents: Extents) -> Linear | None:
    if op == "add":
        return lhs + rhs
    if op == "sub":
        return lhs - rhs
    if op == "mul" and not (lhs.terms and rhs.terms):
        return lhs * rhs.constant if not rhs.terms else rhs * lhs.constant
    if op in ("floordiv", "mod") and not rhs.terms and rhs.constant > 0:
        return (quotient if op == "floordiv" else remainder)(lhs, rhs.constant, extents)
    return None


def total(forms: Iterable[Linear]) -> Linear:
    result = Linear()
    for form in forms:
        result = result + form
    return result
