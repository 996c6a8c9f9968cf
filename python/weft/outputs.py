# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's outputs as a recipe.

The tuples made here are what `weft._core.Specialization` reads; Outputs.h defines them.
"""

from __future__ import annotations

import torch.utils._pytree as pytree

from weft.made import Made, make

# Outputs.h
RESULT, SLOT, OBJECT, VIEW, _TUPLE, _LIST, _DICT, _NODE = range(8)


def describe_outputs(spec: pytree.TreeSpec, leaves: list[tuple]) -> tuple:
    """The recipe for a value of structure `spec`. leaves: one recipe per leaf, in order."""
    remaining = iter(leaves)

    def build(node: pytree.TreeSpec) -> tuple:
        if node.is_leaf():
            return next(remaining)
        children = tuple(build(child) for child in node.children())
        if node.type is tuple:
            return (_TUPLE, children)
        if node.type is list:
            return (_LIST, children)
        if node.type is dict:
            return (_DICT, tuple(node.context), children)
        unflatten = make if node.type is Made else pytree.SUPPORTED_NODES[node.type].unflatten_fn
        return (_NODE, unflatten, node.context, children)

    return build(spec)
