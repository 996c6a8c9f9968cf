# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the nodes of a loop's traced steps do."""

from __future__ import annotations

import operator

import torch
from torch._subclasses.fake_tensor import FakeTensor

from weft.capture.traced_nodes import is_of_constant
from weft.frontend.strides import storage_of
from weft.frontend.walk import CHECKPOINTED

_aten = torch.ops.aten
# What returns its argument where it does nothing, though its schema does not say so.
_MAY_RETURN_ARGUMENT = frozenset(
    [_aten.dropout.default, _aten.feature_dropout.default, _aten.alpha_dropout.default]
)
# Recurrent nets of a batch, which drop what their layers give to the next one.
_RECURRENT = frozenset(
    [_aten.lstm.input, _aten.gru.input, _aten.rnn_tanh.input, _aten.rnn_relu.input]
)
# Operations that write, though their schemas do not say so.
_WRITERS = frozenset([_aten.batch_norm.default, _aten.instance_norm.default])
# Of a step's results, where loading and storing them again at each step is no matter.
_FEW_ELEMENTS = 1024


def is_plain(node: torch.fx.Node) -> bool:
    """Whether it computes tensors from its arguments, and does nothing else."""
    target = node.target
    if target is operator.getitem or is_of_constant(node):
        return True
    return (
        isinstance(target, torch._ops.OpOverload)
        and target.namespace == "aten"
        and not target._schema.is_mutable
        and (torch.Tag.nondeterministic_seeded not in target.tags or _drops_nothing(node))
        and target not in _WRITERS
        and CHECKPOINTED not in node.meta.get("custom", ())
    )


def _drops_nothing(node: torch.fx.Node) -> bool:
    if node.target in _RECURRENT:
        layers, dropout, training = node.args[4:7]
        return training is False or dropout == 0 or layers == 1
    return node.target in _MAY_RETURN_ARGUMENT and node.args[2] is False


def is_elementwise(node: torch.fx.Node) -> bool:
    """So are what only moves elements, and selections."""
    is_op = isinstance(node.target, torch._ops.OpOverload)
    return not is_op or torch.Tag.pointwise in node.target.tags or gives_views(node)


def has_few_elements(node: torch.fx.Node) -> bool:
    """Whether its result does, or a number of them that the call decides."""
    value = node.meta.get("val")
    count = value.numel() if isinstance(value, torch.Tensor) else 0
    return not isinstance(count, int) or count <= _FEW_ELEMENTS


def gives_views(node: torch.fx.Node) -> bool:
    if node.target is operator.getitem:
        return gives_views(node.args[0])
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    returns = node.target._schema.returns
    return node.target in _MAY_RETURN_ARGUMENT or any(each.alias_info for each in returns)


def views_of(node: torch.fx.Node, memories: set[int] | None = None) -> set[torch.fx.Node]:
    """The nodes that give views of the node's tensor, and of these. memories: where it lies, if
    that is not where the node's does."""
    if memories is None:
        value = node.meta.get("val")
        memories = {storage_of(value)} if isinstance(value, FakeTensor) else set()
    found: set[torch.fx.Node] = set()
    rest = [node]
    while rest:
        users = [each for each in rest.pop().users if gives_views(each) or lies_in(each, memories)]
        rest += [each for each in users if each not in found]
        found.update(users)
    return found


def lies_in(node: torch.fx.Node, memories: set[int]) -> bool:
    """Whether a tensor of the node's does in one of these."""
    value = node.meta.get("val")
    values = value if isinstance(value, (tuple, list)) else [value]
    return any(isinstance(each, FakeTensor) and storage_of(each) in memories for each in values)
