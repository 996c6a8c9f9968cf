# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are quotients of others, as those of what windows with steps give.

Each is one more symbol behind those of the arguments: `floor((dividend) / divisor)` with a linear
function of the symbols before it. So all other sizes stay linear functions of symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from torch.utils._sympy.functions import (
    CeilToInt,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Mod,
    PythonMod,
    ToFloat,
    TruncToInt,
)

from weft.frontend.sizes.extents import Domain, Extent

# Of a symbol's sizes at most so many tell whether two quotients are the same.
_COMPARED = 4096
# Of a factor such as 1.5 or 0.7, by which images are made larger or smaller.
_LARGEST_DIVISOR = 64
_MOST_VALUES = 1 << 14
_ROUNDED: dict[Any, Callable[[float], int]] = {
    TruncToInt: math.trunc,
    FloorToInt: math.floor,
    CeilToInt: math.ceil,
}
_PRIME = (1 << 61) - 1  # modulo which numbers are exact, and sizes are as independent as they are


@dataclass(frozen=True)
class Quotient:
    """dividend: a linear function of the symbols before this one. divisor: positive."""

    dividend: Extent
    divisor: int

    def at(self, sizes: Sequence[int]) -> int:
        return self.dividend.at(sizes) // self.divisor


def with_quotients(sizes: Sequence[int], quotients: Iterable[Quotient]) -> tuple[int, ...]:
    """The sizes of the arguments' symbols, and behind them those that follow from them."""
    made = list(sizes)
    for each in quotients:
        made.append(each.at(made))
    return tuple(made)


def bounds_of(domains: Sequence[Domain], quotients: Iterable[Quotient]) -> list[tuple[int, int]]:
    """The least and the largest value of each symbol, whatever the sizes of the arguments."""
    made = [(domain[0], domain[-1]) for domain in domains]
    for each in quotients:
        lows, highs = zip(*made)
        least, most = each.dividend.least(lows, highs), each.dividend.least(highs, lows)
        made.append((least // each.divisor, most // each.divisor))
    return made


def quotients_among(
    sizes: Iterable[Any], symbols: Sequence[Any], domains: Sequence[Domain]
) -> tuple[Quotient, ...]:
    """Those that sizes of a traced program are made of. sizes: sympy expressions. What is neither
    linear nor a quotient gives none; nor does a second one of equal values."""
    reader = _Reader(symbols, domains)
    for size in sorted(set(sizes), key=lambda each: (each.count_ops(), str(each))):
        reader.read(size, is_whole=True)
    return tuple(reader.found)


class _Reader:
    def __init__(self, symbols: Sequence[Any], domains: Sequence[Domain]) -> None:
        self._symbols, self._domains = list(symbols), domains
        self.found: list[Quotient] = []
        self._seen: dict[tuple[int, ...], int] = {}
        for j in range(len(symbols)):
            self._seen[self._values(_symbol(j))] = j

    def read(self, expr: Any, is_whole: bool = False) -> Extent | None:
        """is_whole: of a size, which is a symbol as it is."""
        if expr.is_Integer:
            return Extent((), int(expr))
        if expr in self._symbols:
            return _symbol(self._symbols.index(expr))
        if isinstance(expr, FloorDiv):
            return self._quotient(*expr.args)
        if isinstance(expr, (Mod, PythonMod)):
            dividend, divisor = expr.args
            whole, quotient = self.read(dividend), self._quotient(dividend, divisor)
            if whole is None or quotient is None:
                return None
            return _sum(whole, _times(quotient, -int(divisor)))
        if type(expr) in _ROUNDED:
            return self._rounded(*expr.args, _ROUNDED[type(expr)])
        if expr.is_Add:
            made: Extent | None = Extent((), 0)
            for each in expr.args:
                term = self.read(each)
                made = None if made is None or term is None else _sum(made, term)
            return self._shifted(made) if is_whole and made is not None else made
        if expr.is_Mul:
            number, rest = expr.as_coeff_Mul()
            if number.is_Integer and number != 1 and (term := self.read(rest)) is not None:
                return _times(term, int(number))
            if is_whole:  # of a tensor whose dims an op has made one
                for each in expr.args:
                    self.read(each, is_whole)
        return None

    def _quotient(self, dividend: Any, divisor: Any) -> Extent | None:
        whole = self.read(dividend)
        if whole is None or not divisor.is_Integer or divisor <= 0:
            return None
        return self._symbol_for(Quotient(whole, int(divisor)))

    def _rounded(self, expr: Any, rounded: Callable[[float], int]) -> Extent | None:
        """Of a product with a number that is not whole: a quotient, where floating-point numbers
        are rounded so at each value that there may be."""
        if (found := self._multiple(expr)) is None:
            return None
        whole, times, computed = found
        lows, mosts = zip(*bounds_of(self._domains, self.found))
        values = range(whole.least(lows, mosts), whole.least(mosts, lows) + 1)
        add, divisor = (times.denominator - 1) * (rounded is math.ceil), times.denominator
        if len(values) > _MOST_VALUES or any(
            rounded(computed(n)) != (n * times.numerator + add) // divisor for n in values
        ):
            return None
        dividend = _sum(_times(whole, times.numerator), Extent((), add))
        return dividend if divisor == 1 else self._symbol_for(Quotient(dividend, divisor))

    def _multiple(self, expr: Any) -> tuple[Extent, Fraction, Callable[[int], float]] | None:
        """The whole number that a real one is a multiple of, the factor, and how it is computed."""
        if isinstance(expr, ToFloat):
            whole = self.read(expr.args[0])
            return None if whole is None else (whole, Fraction(1), float)
        if isinstance(expr, (IntTrueDiv, FloatTrueDiv)) and expr.args[1].is_number:
            by = float(expr.args[1])
            if isinstance(expr, IntTrueDiv):
                whole = self.read(expr.args[0])
                return None if whole is None else (whole, _fraction(1 / by), lambda n: n / by)
            if (found := self._multiple(expr.args[0])) is None:
                return None
            whole, times, computed = found
            return whole, times * _fraction(1 / by), lambda n: computed(n) / by
        if expr.is_Mul:
            number, rest = expr.as_coeff_Mul()
            if number == 1 or not number.is_real or (found := self._multiple(rest)) is None:
                return None
            whole, times, computed = found
            return whole, times * _fraction(float(number)), lambda n: float(number) * computed(n)
        return None

    def _shifted(self, size: Extent) -> Extent:
        """One more than a quotient is a quotient, too, and the symbol that kernels look for."""
        numbers = [j for j, c in enumerate(size.coefficients) if c]
        if len(numbers) == 1 and size.constant and size.coefficients[numbers[0]] == 1:
            place = numbers[0] - len(self._symbols)
            if place >= 0:
                of = self.found[place]
                more = Extent((), size.constant * of.divisor)
                return self._symbol_for(Quotient(_sum(of.dividend, more), of.divisor))
        return size

    def _symbol_for(self, quotient: Quotient) -> Extent:
        self.found.append(quotient)
        number = len(self._symbols) + len(self.found) - 1
        values = self._values(_symbol(number))
        same = self._seen.setdefault(values, number)
        if same != number:
            self.found.pop()
        return _symbol(same)

    def _values(self, extent: Extent) -> tuple[int, ...]:
        found = self.found
        return tuple(extent.at(with_quotients(each, found)) for each in _compared(self._domains))


def _compared(domains: Sequence[Domain]) -> Iterator[tuple[int, ...]]:
    """Sizes of one symbol after another, beside the least and the largest of the others."""
    for j, domain in enumerate(domains):
        for size in domain[-1 - _COMPARED :]:
            for end in (0, -1):
                yield (*(each[end] for each in domains[:j]), size,
                       *(each[end] for each in domains[j + 1 :]))  # fmt: skip


def telling_samples(
    samples: Iterable[tuple[int, ...]], domains: Sequence[Domain], quotients: Sequence[Quotient]
) -> list[tuple[int, ...]]:
    """The sizes of all symbols at these of the arguments' and at some more: what holds of linear
    functions of symbols at the samples, as that two are equal, holds in the whole range. Steps of 8
    from other places on, for one, differ at few sizes.
    """
    made = [with_quotients(each, quotients) for each in samples]
    rows: list[list[int]] = []  # each with 1 at a place of its own, at which those behind have 0
    for row in made:
        _is_independent((1, *row), rows)
    for sizes in _compared(domains) if quotients else ():
        if len(rows) == 1 + len(made[0]):
            break
        row = with_quotients(sizes, quotients)
        if _is_independent((1, *row), rows):
            made.append(row)
    return made


def _is_independent(row: Sequence[int], rows: list[list[int]]) -> bool:
    """Whether a row is no linear combination of `rows`, which it then joins."""
    left = [each % _PRIME for each in row]
    for other in rows:
        if times := left[other.index(1)]:
            left = [(a - times * b) % _PRIME for a, b in zip(left, other)]
    if (first := next(filter(None, left), 0)) == 0:
        return False
    inverse = pow(first, -1, _PRIME)
    rows.append([each * inverse % _PRIME for each in left])
    return True


def _fraction(number: float) -> Fraction:
    return Fraction(number).limit_denominator(_LARGEST_DIVISOR)


def _symbol(number: int) -> Extent:
    return Extent((0,) * number + (1,), 0)


def _sum(one: Extent, other: Extent) -> Extent:
    a, b = one.coefficients, other.coefficients
    length = max(len(a), len(b))
    a, b = (each + (0,) * (length - len(each)) for each in (a, b))
    return Extent(tuple(map(sum, zip(a, b))), one.constant + other.constant)


def _times(extent: Extent, number: int) -> Extent:
    return Extent(tuple(c * number for c in extent.coefficients), extent.constant * number)


def single_quotients(bases: int, quotients: Sequence[Quotient]) -> list[tuple[int, int, int]]:
    """Each symbol as floor((symbol + add) / divisor) of one of the arguments', (symbol, add,
    divisor); -1 where it is none."""
    made = [(j, 0, 1) for j in range(bases)]
    for each in quotients:
        of = [(j, c) for j, c in enumerate(each.dividend.coefficients) if c]
        if len(of) != 1 or of[0][1] != 1 or made[of[0][0]][0] < 0:
            made.append((-1, 0, 1))
            continue
        base, add, divisor = made[of[0][0]]
        made.append((base, add + each.dividend.constant * divisor, divisor * each.divisor))
    return made


def grows_to(extent: Extent, domains: Sequence[Domain], quotients: Sequence[Quotient]) -> bool:
    """Whether it is nowhere more than at the ends of the ranges, which tensors are padded to."""
    highs = [domain[-1] for domain in domains]
    most = extent.at(with_quotients(highs, quotients))
    lows, mosts = zip(*bounds_of(domains, quotients))
    if extent.least(mosts, lows) <= most:
        return True
    among = _arguments_of(extent, quotients, len(domains))
    if len(among) != 1:
        return False
    (j,) = among
    return len(domains[j]) <= _COMPARED + 1 and all(
        extent.at(with_quotients([*highs[:j], size, *highs[j + 1 :]], quotients)) <= most
        for size in domains[j]
    )


def _arguments_of(extent: Extent, quotients: Sequence[Quotient], bases: int) -> set[int]:
    """The arguments' symbols that it is made of."""
    found: set[int] = set()
    for number, c in enumerate(extent.coefficients):
        if c and number < bases:
            found.add(number)
        elif c:
            found |= _arguments_of(quotients[number - bases].dividend, quotients, bases)
    return found
