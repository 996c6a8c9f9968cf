# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many elements of a dim count, as a function of the symbols.

A program that serves a range of sizes is a program for the largest, whose tensors are padded: along
a dim of `Factor.sizes[0]` elements the first `extent` count, the others hold anything. What follows
from them must not reach elements that count.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

Domain = Sequence[int]  # the sizes that a symbol may have, ascending
Samples = list[tuple[int, ...]]  # of sizes of all symbols; the first are the largest


@dataclass(frozen=True)
class Extent:
    """coefficients * symbols + constant."""

    coefficients: tuple[int, ...]
    constant: int

    def at(self, sizes: Sequence[int]) -> int:
        return sum(c * n for c, n in zip(self.coefficients, sizes)) + self.constant

    def least(self, lows: Sequence[int], highs: Sequence[int]) -> int:
        """The least value within these bounds of the symbols."""
        ends = (low if c > 0 else high for c, low, high in zip(self.coefficients, lows, highs))
        return self.at(list(ends))

    def __str__(self) -> str:
        names = (f"{c}*n{j}" if c != 1 else f"n{j}" for j, c in enumerate(self.coefficients) if c)
        terms = [*names, *([str(self.constant)] if self.constant else [])]
        return " + ".join(terms) or "0"


@dataclass(frozen=True)
class Factor:
    """A dim, or one of several that a reshape has made one. sizes: in each sample. extent: None of
    a size that no symbol decides, or that is no linear function of them. uniform: all elements
    along it are the same."""

    sizes: tuple[int, ...]
    extent: Extent | None = None
    uniform: bool = False

    @property
    def is_static(self) -> bool:
        return self.extent is None and len(set(self.sizes)) == 1


Dim = tuple[Factor, ...]


def sample_sizes(domains: Sequence[Domain], finer: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """Sizes that tell linear functions of the arguments' symbols, and most others from them.

    finer: the symbols of which there are quotients, which are told apart by more sizes.
    """
    highs = tuple(domain[-1] for domain in domains)
    samples = [highs]
    for j, domain in enumerate(domains):
        less = domain[-4:-1][::-1]
        middle = bisect.bisect_left(domain, (domain[0] + domain[-1]) // 2 | 1)
        more = (*less[1:], *domain[middle : middle + 1]) if j in finer else ()
        for size in dict.fromkeys((*less[:1], *more, domain[0])):
            if size < highs[j]:
                samples.append((*highs[:j], size, *highs[j + 1 :]))
    if len(highs) > 1:  # a product of two sizes is linear in each
        places = (max(0, len(domain) - 2 - j) for j, domain in enumerate(domains))
        samples.append(tuple(domain[place] for domain, place in zip(domains, places)))
    return samples


def fit(values: Sequence[int], samples: Samples, bases: int | None = None) -> Extent | None:
    """The linear function that has these values at the samples, None if there is none.

    bases: how many symbols are those of arguments, all if None; of the others it has at most one,
    and only where it is no function of these alone.
    """
    count = len(samples[0])
    bases = count if bases is None else bases
    if (found := _fit_bases(values, samples, bases)) is not None:
        return found
    for alone in (True, False):
        for symbol in range(bases, count):
            of_symbol = [each[symbol] for each in samples]
            slopes = (
                _slopes(values, of_symbol) if alone else _slopes_beside(values, samples, symbol)
            )
            for times in slopes:
                rest = [v - times * n for v, n in zip(values, of_symbol)]
                found = _fit_bases(rest, samples, 0 if alone else bases)
                if found is not None:
                    coefficients = list(found.coefficients)
                    coefficients[symbol] = times
                    return Extent(tuple(coefficients), found.constant)
    return None


def _slopes(values: Sequence[int], of_symbol: Sequence[int]) -> list[int]:
    """By how much the values grow for each unit of a symbol, if nothing else changes them."""
    for value, number in zip(values, of_symbol):
        if number != of_symbol[0]:
            times, rest = divmod(values[0] - value, of_symbol[0] - number)
            return [times] if not rest and times else []
    return []


def _slopes_beside(values: Sequence[int], samples: Samples, symbol: int) -> list[int]:
    """By how much the values may grow with a symbol, if they also depend on an argument's size."""
    made = (_slope_beside(values, samples, j, symbol) for j in range(symbol))
    return [*dict.fromkeys(each for each in made if each)]


def _slope_beside(values: Sequence[int], samples: Samples, j: int, symbol: int) -> int:
    """The same where the size is `j`; 0 if there is none."""
    found = [
        (s[j] - samples[0][j], s[symbol] - samples[0][symbol], value - values[0])
        for s, value in zip(samples, values)
    ]
    for n, m, value in found:
        for other_n, other_m, other in found:
            if scale := n * other_m - other_n * m:
                times, rest = divmod(n * other - other_n * value, scale)
                return 0 if rest else times
    return 0


def _fit_bases(values: Sequence[int], samples: Samples, bases: int) -> Extent | None:
    first, coefficients = samples[0], [0] * len(samples[0])
    for j in range(bases):
        for value, sizes in zip(values, samples):
            others = (a == b for i, (a, b) in enumerate(zip(sizes[:bases], first)) if i != j)
            if sizes[j] != first[j] and all(others):
                coefficients[j], rest = divmod(values[0] - value, first[j] - sizes[j])
                if rest:
                    return None
                break
    constant = values[0] - sum(c * n for c, n in zip(coefficients, first))
    found = Extent(tuple(coefficients), constant)
    return found if all(found.at(s) == v for s, v in zip(samples, values)) else None


def factor_of(
    sizes: Sequence[int], samples: Samples, uniform: bool = False, bases: int | None = None
) -> Factor:
    sizes = tuple(sizes)
    extent = fit(sizes, samples, bases) if len(set(sizes)) > 1 else None
    return Factor(sizes, extent, uniform)


def size_of(dim: Dim, sample: int = 0) -> int:
    return math.prod(factor.sizes[sample] for factor in dim)


def is_static(dim: Dim) -> bool:
    return all(factor.is_static for factor in dim)


def is_uniform(dim: Dim) -> bool:
    return all(factor.uniform for factor in dim)


def joined(dim: Dim) -> Dim:
    """The same with as few factors as say it: what counts of a dim is a prefix if there is one."""
    made: list[Factor] = []
    for factor in dim:
        if factor.is_static and factor.sizes[0] == 1:
            continue
        last = made[-1] if made else None
        if last is not None and factor.is_static and (last.is_static or last.extent is not None):
            count = factor.sizes[0]
            extent = last.extent and Extent(
                tuple(c * count for c in last.extent.coefficients), last.extent.constant * count
            )
            sizes = tuple(size * count for size in last.sizes)
            made[-1] = Factor(sizes, extent, last.uniform and factor.uniform)
        else:
            made.append(factor)
    return tuple(made)


def unified(one: Dim, other: Dim) -> Dim | None:
    """The dim of the result of an elementwise op; None if its operands are padded differently."""
    if is_uniform(one):
        return other
    if is_uniform(other):
        return one
    a, b = joined(one), joined(other)
    same = [(f.sizes, f.extent) for f in a] == [(f.sizes, f.extent) for f in b]
    return one if same else None


def regrouped(dims: Sequence[Dim], shapes: Sequence[Sequence[int]]) -> list[Dim] | None:
    """The dims of a reshape. shapes: of the result, in each sample."""
    atoms = [factor for dim in dims for factor in dim if set(factor.sizes) != {1}]
    made: list[Dim] = []
    for wanted in zip(*shapes):
        left, taken = list(wanted), []
        while set(left) != {1}:
            if not atoms:
                return None
            atom = atoms.pop(0)
            if all(n % size == 0 for n, size in zip(left, atom.sizes)):
                left = [n // size for n, size in zip(left, atom.sizes)]
                taken.append(atom)
            elif atom.is_static and len(set(left)) == 1 and atom.sizes[0] % left[0] == 0:
                taken.append(replace(atom, sizes=tuple(left)))
                rest = atom.sizes[0] // left[0]
                atoms.insert(0, replace(atom, sizes=(rest,) * len(left)))
                left = [1] * len(left)
            elif (parts := _split(atom, left)) is not None:
                taken.append(parts[0])
                atoms.insert(0, parts[1])
                left = [1] * len(left)
            else:
                return None
        made.append(tuple(taken))
    return None if atoms else made


def _split(atom: Factor, sizes: Sequence[int]) -> tuple[Factor, Factor] | None:
    """The factor as blocks of one number of elements each, which count as a whole or not at all."""
    if atom.extent is None or any(not n or size % n for n, size in zip(sizes, atom.sizes)):
        return None
    blocks = {size // n for n, size in zip(sizes, atom.sizes)}
    if len(blocks) != 1:
        return None
    numbers = (*atom.extent.coefficients, atom.extent.constant)
    if any(each % (block := next(iter(blocks))) for each in numbers):
        return None
    *coefficients, constant = (each // block for each in numbers)
    outer = Factor(tuple(sizes), Extent(tuple(coefficients), constant), atom.uniform)
    return outer, replace(atom, sizes=(block,) * len(sizes), extent=None)


def plain(dims: Sequence[Dim]) -> list[Dim]:
    """The dims of a value whose padding may hold anything."""
    return [tuple(f if f.is_static else Factor(f.sizes, f.extent) for f in dim) for dim in dims]
