# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's outputs as a recipe.

The tuples made here are what `weft._core.Specialization` reads; Outputs.h defines them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft import _core
from weft.capture.argument_changes import Changed, apply
from weft.capture.argument_objects import Given
from weft.capture.returned_objects import Made, make
from weft.capture.signature import make_dataclass
from weft.capture.valid_parts import valid_part

# Outputs.h
RESULT, SLOT, OBJECT, VIEW, _TUPLE, _LIST, _DICT, NODE, _GIVEN, VALID, SIZED_VIEW = range(11)


@dataclass(frozen=True)
class Structure:
    """A pytree's form, as `pytree.TreeSpec`, which does not pickle without a warning. type: None of
    a leaf."""

    type: Any
    context: Any
    children: tuple[Structure, ...]

    @staticmethod
    def of(spec: pytree.TreeSpec) -> Structure:
        if spec.is_leaf():
            return Structure(None, None, ())
        return Structure(spec.type, spec.context, tuple(map(Structure.of, spec.children())))


def describe_outputs(structure: Structure, leaves: list[tuple]) -> tuple:
    """The recipe for a value of this structure. leaves: one recipe per leaf, in order."""
    remaining = iter(leaves)

    def build(node: Structure) -> tuple:
        if node.type is None:
            return next(remaining)
        if node.type is Given:
            return (_GIVEN, node.context)
        children = tuple(build(child) for child in node.children)
        if node.type is Changed:
            objects = tuple((_GIVEN, number) for number in range(len(node.context)))
            return (NODE, apply, node.context, (*children, *objects))
        if node.type is tuple:
            return (_TUPLE, children)
        if node.type is list:
            return (_LIST, children)
        if node.type is dict:
            return (_DICT, tuple(node.context), children)
        return (NODE, _unflatten(node.type), node.context, children)

    return build(structure)


def build_outputs(
    recipe: tuple, results: Sequence[torch.Tensor], slots: Sequence[torch.Tensor]
) -> Any:
    """The value that a recipe describes, as Outputs.cpp makes it; views are autograd's, too."""
    return _built(recipe, results, slots, {})


def _built(
    recipe: tuple,
    results: Sequence[torch.Tensor],
    slots: Sequence[torch.Tensor],
    valid: dict[int, torch.Tensor],
) -> Any:
    """valid: the parts of results so far, each of which is one tensor, however often it is
    returned."""
    kind, *rest = recipe
    if kind == RESULT:
        return results[rest[0]]
    if kind == SLOT:
        return slots[rest[0]]
    if kind == OBJECT:
        return rest[0]
    if kind == VALID:
        if rest[0] not in valid:
            valid[rest[0]] = valid_part(results[rest[0]], rest[2], slots[rest[1]])
        return valid[rest[0]]
    if kind == SIZED_VIEW:
        base = _built(rest[0], results, slots, valid)
        return _core.SizedView(rest[2]).of(base, slots[rest[1]])
    if kind == _GIVEN:  # which the call has, and not its results
        return None
    if kind == VIEW:
        base = _built(rest[0], results, slots, valid)
        sizes, strides, offset = rest[1:4]
        return base.as_strided(sizes, strides, base.storage_offset() + offset)
    children = [_built(child, results, slots, valid) for child in rest[-1]]
    if kind == _DICT:
        return dict(zip(rest[0], children, strict=True))
    if kind == NODE:
        return rest[0](children, rest[1])
    return tuple(children) if kind == _TUPLE else children


def _unflatten(kind: type) -> Callable[[Any, Any], Any]:
    if kind is Made:
        return make
    known = pytree.SUPPORTED_NODES.get(kind)
    return functools.partial(make_dataclass, kind) if known is None else known.unflatten_fn
