# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many elements of a dim count, as a function of the symbols.

A program that serves a range of sizes is a program for the largest, whose tensors are padded: along
a dim of `Factor.sizes[0]` elements the first `extent` count, the others hold anything. What follows
from them must not reach elements that count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

Samples = list[tuple[int, ...]]  # of sizes of the symbols; the first are the largest


@dataclass(frozen=True)
class Extent:
    """coefficients * symbols + constant."""

    coefficients: tuple[int, ...]
    constant: int

    def at(self, sizes: Sequence[int]) -> int:
        return sum(c * n for c, n in zip(self.coefficients, sizes)) + self.constant

    def least(self, lows: Sequence[int], highs: Sequence[int]) -> int:
        """Within these bounds of the symbols."""
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


def sample_sizes(lows: Sequence[int], highs: Sequence[int]) -> Samples:
    """Sizes that tell linear functions of the symbols, and most others from them."""
    samples = [tuple(highs)]
    for j, (low, high) in enumerate(zip(lows, highs)):
        for size in dict.fromkeys((high - 1, low)):
            if low <= size < high:
                samples.append((*highs[:j], size, *highs[j + 1 :]))
    if len(highs) > 1:  # a product of two sizes is linear in each
        samples.append(
            tuple(max(low, high - 1 - j) for j, (low, high) in enumerate(zip(lows, highs)))
        )
    return samples


def fit(values: Sequence[int], samples: Samples) -> Extent | None:
    """The linear function that has these values at the samples, None if there is none."""
    highs, coefficients = samples[0], []
    for j in range(len(highs)):
        near = next((i for i, each in enumerate(samples) if each[j] == highs[j] - 1), None)
        coefficients.append(0 if near is None else values[0] - values[near])
    constant = values[0] - sum(c * n for c, n in zip(coefficients, highs))
    found = Extent(tuple(coefficients), constant)
    return found if all(found.at(s) == v for s, v in zip(samples, values)) else None


def factor_of(sizes: Sequence[int], samples: Samples, uniform: bool = False) -> Factor:
    sizes = tuple(sizes)
    extent = fit(sizes, samples) if len(set(sizes)) > 1 else None
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
    """Of two tensors that are combined element by element; None if they are padded otherwise."""
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
            else:
                return None
        made.append(tuple(taken))
    return None if atoms else made


def plain(dims: Sequence[Dim]) -> list[Dim]:
    """Of a value whose padding may differ from what is the same along it."""
    return [tuple(f if f.is_static else Factor(f.sizes, f.extent) for f in dim) for dim in dims]
