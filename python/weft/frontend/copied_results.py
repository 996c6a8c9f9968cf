# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results that are copies of other results or of inputs, in a call that records gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from weft.frontend.builder import Builder
from weft.frontend.graph import Value
from weft.frontend.strides import storage_of


def with_own_value(builder: Builder, node: torch.fx.Node, env: Mapping[torch.fx.Node, Any]) -> Any:
    """The node's value. A rule gives what it copies: a result has one of its own, through which
    autograd comes to that, and by which others come to the copy."""
    value, source = env[node], node
    if not (builder.graph.training and isinstance(value, Value) and _is_result(node)):
        return value
    if not value.dtype.is_floating_point:
        return value
    while source.args and isinstance(source.args[0], torch.fx.Node):
        source = source.args[0]
        if env.get(source) is not value:
            break
        is_known = _is_result(source) or (source.op == "placeholder" and len(node.users) > 1)
        if is_known and not _share_memory(source, node):
            return builder.with_slopes(value, (value, 1))
    return value


def _is_result(node: torch.fx.Node) -> bool:
    return any(user.op == "output" for user in node.users)


def _share_memory(a: torch.fx.Node, b: torch.fx.Node) -> bool:
    return storage_of(a.meta["val"]) == storage_of(b.meta["val"])
