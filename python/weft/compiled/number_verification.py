# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a program that has numbers as inputs with PyTorch at other values, which came earlier.
At the values that it was made for, a program with constants would agree as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.utils._pytree as pytree

from weft.capture.argument_objects import register
from weft.capture.isolated import Abandoned, call_isolated
from weft.capture.signature import describe, register_dataclasses
from weft.compiled.number_arguments import VaryingNumbers, kind_of
from weft.compiled.verification import Check, Verdict

if TYPE_CHECKING:
    from weft.compiled.requests import Found
_MOST_COMPARED = 3  # sets of values, including the call's own


def differs_at_others(
    found: Found,
    original: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
    varying: VaryingNumbers,
) -> str | None:
    """The difference, or None, found in a process where the effects of calls are not seen."""
    specialized = found.specialized
    if specialized.numbers is None:
        return None
    kind = kind_of(describe(args, kwargs), specialized.wants_gradients)
    others = varying.seen.get(kind, [])[-_MOST_COMPARED:] or [{}]
    past = [
        (owner, name, varying.before[id(owner), name])
        for owner, name in specialized.numbers.wanted.attributes
        if (id(owner), name) in varying.before
    ]

    def differs() -> str | None:
        register_dataclasses((args, kwargs))
        register((args, kwargs))
        for owner, name, value in past:
            owner[name] = value
        leaves, structure = pytree.tree_flatten((args, kwargs))
        for each in others:
            changed = [
                each.get(number, leaf.clone() if _is_plain(leaf) else leaf)
                for number, leaf in enumerate(leaves)
            ]
            reason = _differs(found, original, *pytree.tree_unflatten(changed, structure))
            if reason is not None:
                values = [*each.values(), *(value for _, _, value in past)]
                return f"with numbers {', '.join(map(repr, values))}: {reason}"
        return None

    try:
        reason: str | None = call_isolated(differs, {})
    except Abandoned:
        raise
    except Exception as error:
        return f"with other numbers it cannot be compared: {type(error).__name__}: {error}"
    return reason


def _is_plain(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and not leaf.requires_grad


def _differs(
    found: Found, original: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> str | None:
    specialized = found.specialized
    if specialized.numbers is None or not specialized.core.matches(args, kwargs):
        return None
    signature = specialized.numbers.described(args, kwargs)
    check = Check(specialized, signature, found.environment.state, args, kwargs)
    value = original(*args, **kwargs)
    finding = check.conclude(value, lambda: None, lambda: original(*args, **kwargs))
    return None if finding.verdict is Verdict.SAME else finding.reason
