# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tensors of an exported graph lie in memory in eager mode: as their fakes, but for results of
kernels that lay them out otherwise (`asking.py`), and for what is made of these."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from weft.frontend.asking import ask, dense, is_harmless, is_view, order
from weft.frontend.fallback import Lying, flatten_results
from weft.frontend.graph import Value

_LYING = "weft_lying"  # of a node: the strides of its flattened results


def strides_in_eager(node: torch.fx.Node) -> tuple[int, ...]:
    """Of the tensor that `node` gives."""
    waiting = [node]
    while waiting:
        needed = [each for each in waiting[-1].all_input_nodes if _LYING not in each.meta]
        if needed:
            waiting += needed
            continue
        last = waiting.pop()
        last.meta[_LYING] = _lying(last)
    return node.meta[_LYING][0]


def with_strides(node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
    """(args, kwargs) with copies of tensors that lie as in eager mode where these are not
    contiguous, since numbers are drawn in the order of memory, or are written."""
    given, spec = pytree.tree_flatten((args, kwargs))
    nodes = pytree.tree_leaves((node.args, node.kwargs))

    def lying(value: Any, each: Any) -> Any:
        if not isinstance(value, Value):
            return value
        fake, strides = each.meta["val"], strides_in_eager(each)
        lies = not _has_known_sizes(fake) or _is_contiguous(fake.shape, strides)
        copied = node.target._schema.is_mutable or not lies
        return Lying(value, strides) if copied else value

    return pytree.tree_unflatten(list(map(lying, given, nodes)), spec)


def _lying(node: torch.fx.Node) -> list[tuple[int, ...]]:
    fakes = flatten_results(node.meta.get("val"))
    as_traced = [_strides(fake) for fake in fakes]
    if node.op != "call_function" or not any(isinstance(fake, torch.Tensor) for fake in fakes):
        return as_traced
    if not all(map(_has_known_sizes, fakes)):
        return as_traced
    if node.target is operator.getitem:
        maker, number = node.args
        flat = maker.meta[_LYING]
        is_known = isinstance(number, int) and len(flat) == len(maker.meta["val"])
        return [flat[number]] if is_known else as_traced
    if not isinstance(node.target, torch._ops.OpOverload):
        return as_traced
    moved = {
        each: each.meta[_LYING][0]
        for each in node.all_input_nodes
        if isinstance(each.meta.get("val"), torch.Tensor)
        and _has_known_sizes(each.meta["val"])
        and each.meta[_LYING][0] != _strides(each.meta["val"])
    }
    if is_view(node.target):
        return _viewed(node, moved, as_traced) if moved else as_traced
    if node.target._schema.is_mutable:
        first = node.args[0] if node.args else None
        is_same = first in moved and first.meta["val"].shape == fakes[0].shape
        return [moved[first], *as_traced[1:]] if is_same else as_traced
    if not is_harmless(node):
        return _drawn(node, moved, as_traced)
    answer = ask(node, moved)
    if answer.orders is None or len(answer.orders) != len(fakes):
        return as_traced
    return [
        _of(fake, known, answered, answer.layouts[number])
        for number, (fake, known, answered) in enumerate(zip(fakes, as_traced, answer.orders))
    ]


def _drawn(node: torch.fx.Node, moved, as_traced: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Random numbers for the elements of the first argument lie as these do, if they are dense."""
    first, fakes = node.args[0] if node.args else None, flatten_results(node.meta["val"])
    if torch.Tag.nondeterministic_seeded not in node.target.tags or first not in moved:
        return as_traced
    like = torch.empty_strided(first.meta["val"].shape, moved[first], device="meta")
    strides = tuple(torch.empty_like(like).stride())
    return [
        strides if isinstance(fake, torch.Tensor) and fake.shape == like.shape else known
        for fake, known in zip(fakes, as_traced)
    ]


def _of(fake, as_traced: tuple[int, ...], answered: Sequence[int] | None, layout) -> tuple:
    """layout: shape and strides of the call that was made, which may be a smaller one."""
    if answered is None or not isinstance(fake, torch.Tensor):
        return as_traced
    if layout is not None and layout[0] == tuple(fake.shape):
        return layout[1]
    if answered == order(fake):
        return as_traced
    return dense(fake.shape, [fake.dim() - answered.index(d) for d in range(fake.dim())])


def _viewed(node: torch.fx.Node, moved, as_traced: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A view of what lies otherwise, or a copy where there is no such view."""

    def lying(each: torch.fx.Node):
        fake = each.meta["val"]
        if not isinstance(fake, torch.Tensor):
            return fake
        strides = moved.get(each, _strides(fake))
        return torch.empty_strided(fake.shape, strides, dtype=fake.dtype, device="meta")

    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lying)
    try:
        return [_strides(value) for value in flatten_results(node.target(*args, **kwargs))]
    except RuntimeError:  # torch traced the view of another layout
        return as_traced


def _is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return torch.empty_strided(shape, strides, device="meta").is_contiguous()


def _has_known_sizes(value) -> bool:
    """Whether they may be compared: a comparison of symbols restricts what these stand for."""
    if not isinstance(value, torch.Tensor):
        return True
    return all(type(number) is int for number in (*value.shape, *value.stride()))


def _strides(value) -> tuple[int, ...]:
    return tuple(value.stride()) if isinstance(value, torch.Tensor) else ()
