# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls as flat lists: the tensors, including those in objects among the arguments, and a key for
everything else.

Programs for ranges of sizes take their arguments in this form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft.capture.argument_objects import NO_COUNTERS, Counters, form, is_object, sizes_in
from weft.capture.argument_objects import flatten as flatten_object
from weft.capture.returned_objects import make
from weft.capture.signature import NODE, PLAIN, TENSOR, Signature, own_attributes


@dataclass
class FlatCall:
    """A call as a flat list.

    leaves: of (args, kwargs), in the order of tracing. objects: those that are not pytrees. key:
    equal for calls that differ only in tensors, with the same tensors occurring more than once.
    plan: how `rebuilt` assembles the leaves; None for a single leaf. counted: the leaves that stand
    for counters.
    """

    leaves: list[Any]
    objects: list[Any]
    key: tuple
    structure: pytree.TreeSpec
    plan: list[tuple[int, tuple] | None]
    counted: frozenset[int] = frozenset()

    @staticmethod
    def of(
        args: tuple, kwargs: dict[str, Any], counters: Counters = NO_COUNTERS
    ) -> FlatCall | None:
        """The flat call; None if it has arguments that no program takes."""
        flat, structure = pytree.tree_flatten((args, kwargs))
        leaves: list[Any] = []
        objects: list[Any] = []
        plan: list[tuple[int, tuple] | None] = []
        facts: list[Any] = []
        counted: list[int] = []
        first: dict[int, int] = {}
        for leaf in flat:
            kind = type(leaf)
            if isinstance(leaf, torch.Tensor):
                if leaf.__dict__ and own_attributes(leaf):
                    return None
                facts.append(first.setdefault(id(leaf), len(leaves)))
            elif kind in PLAIN:
                facts.append((kind, leaf.hex() if kind is float else leaf))
            elif is_object(leaf):
                try:
                    tensors, recipe = flatten_object(leaf, counters)
                except Exception:  # without a recipe there is no program
                    return None
                for number, tensor in enumerate(tensors, len(leaves)):
                    facts.append(first.setdefault(id(tensor), number))
                facts.append((kind, recipe))
                counted += [len(leaves) + number for number in sizes_in(recipe)]
                plan.append((len(tensors), recipe))
                leaves += tensors
                objects.append(leaf)
                continue
            else:
                facts.append((kind, leaf))
            plan.append(None)
            leaves.append(leaf)
        return FlatCall(leaves, objects, tuple(facts), structure, plan, frozenset(counted))

    def kind(self) -> tuple:
        """A key that is equal for calls that differ in sizes of tensors and in numbers that objects
        hold."""
        facts = tuple(
            (fact[0], form(fact[1])) if type(fact) is tuple and type(fact[1]) is tuple else fact
            for fact in self.key
        )
        tensors = tuple(
            (leaf.dtype, leaf.dim(), leaf.requires_grad)
            for leaf in self.leaves
            if isinstance(leaf, torch.Tensor)
        )
        return facts, tensors

    @property
    def recipes(self) -> list[tuple]:
        """The recipes of the returned objects."""
        return [part[1] for part in self.plan if part is not None]

    def held(self) -> set[int]:
        """The numbers of the leaves that objects hold."""
        found: set[int] = set()
        for start, part in zip(self.starts(), self.plan):
            if part is not None:
                found.update(range(start, start + part[0]))
        return found

    def starts(self) -> list[int]:
        """The first leaf of each leaf of torch's own pytrees."""
        counts = [1 if part is None else part[0] for part in self.plan]
        return [sum(counts[:number]) for number in range(len(counts))]

    def rebuilt(self, leaves: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments with other leaves, and with new objects."""
        rest = iter(leaves)
        made = []
        for part in self.plan:
            if part is None:
                made.append(next(rest))
            else:
                count, recipe = part
                made.append(make([next(rest) for _ in range(count)], recipe))
        return pytree.tree_unflatten(made, self.structure)


def described(
    leaves: Sequence[Any],
    objects: Sequence[Any],
    lengths: Sequence[torch.Tensor],
    sizes: torch.Tensor,
) -> Signature:
    """The pattern of the call that a range's program is given: the tensors among the leaves, then
    tensors that have lengths as sizes, then the sizes, then the objects, of which it takes
    nothing."""
    patterns: list[tuple] = []
    signature = Signature(leaves=[*leaves, sizes])
    for number, leaf in enumerate(signature.leaves):
        for each in lengths if leaf is sizes else ():
            patterns.append((TENSOR, len(signature.examples)))
            signature.examples.append(each)
        if isinstance(leaf, torch.Tensor):
            signature.slots[number] = len(signature.examples)
            patterns.append((TENSOR, len(signature.examples)))
            signature.examples.append(leaf)
    for number, value in enumerate(objects):
        patterns.append((NODE, type(value), _as_it_is, None, (), number))
    signature.arguments = tuple(patterns)
    return signature


def _as_it_is(value: Any) -> tuple[list, None]:
    return [], None
