# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ops under no_grad give in a call that records gradients."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.pairs import Pair
from weft.frontend.strides import storage_of

_aten = torch.ops.aten
# They may return their argument, which has the gradient that it had.
_MAY_GIVE_ARGUMENT = frozenset(
    {
        *(_aten.contiguous, _aten.to, _aten.type_as, _aten.flatten, _aten.positive),
        *(_aten.dropout, _aten.alpha_dropout, _aten.feature_dropout, _aten.feature_alpha_dropout),
        *(_aten.resolve_conj, _aten.resolve_neg, _aten.real),
    }
)


def without_gradient(
    builder: Builder, node: torch.fx.Node, result: Any, made: Container[int]
) -> Any:
    """What such a call gives: a rule may have returned a value that was there before, as for a
    copy, whose gradient PyTorch does not let through.

    made: the ids of the values that the call's nodes give.
    """
    if getattr(node.target, "overloadpacket", None) in _MAY_GIVE_ARGUMENT:
        given = node.args[0].meta["val"] if isinstance(node.args[0], torch.fx.Node) else None
        if isinstance(given, torch.Tensor) and storage_of(given) == storage_of(node.meta["val"]):
            return result
    if isinstance(result, (tuple, list)):
        return type(result)(without_gradient(builder, node, each, made) for each in result)
    if isinstance(result, Pair):
        parts = (result.real, result.imag)
        return Pair(*(without_gradient(builder, node, each, made) for each in parts))
    if isinstance(result, Value) and result.dtype.is_floating_point and id(result) not in made:
        return builder.detached(result)
    return result
