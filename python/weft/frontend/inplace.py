# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In-place ops that their out-of-place form can stand for, as relu_ on a layer's result.

Where these are all the mutation in a program, it needs no functionalisation by torch, which
traces the whole program anew and takes as long as the export.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import torch

from weft.frontend.fallback import flatten_results
from weft.frontend.strides import storage_of

# Whose schemas do not say, of some overload, that they write running statistics.
WRITES_STATISTICS = frozenset(
    f"aten::{name}"
    for name in (
        *("batch_norm", "instance_norm", "native_batch_norm", "_native_batch_norm_legit"),
        *("_batch_norm_with_update", "_batch_norm_impl_index", "cudnn_batch_norm"),
        *("miopen_batch_norm", "batch_norm_update_stats", "batch_norm_gather_stats"),
        "batch_norm_gather_stats_with_counts",
    )
)
_NORMS = ("aten::batch_norm", "aten::instance_norm", "aten::native_batch_norm")
# Of which autograd counts no write, whether their schemas tell of it or not.
_UNCOUNTED = (
    *("aten::batch_norm", "aten::native_batch_norm"),
    *("aten::_native_batch_norm_legit", "aten::_batch_norm_with_update", "aten::detach_"),
)
# Two writes, unless all is dropped.
_MULTIPLIED_AND_ADDED = ("aten::alpha_dropout_", "aten::feature_alpha_dropout_")
# These write running statistics always.
_WRITE_UNSAID = (
    "aten::batch_norm_update_stats",
    "aten::batch_norm_gather_stats",
    "aten::batch_norm_gather_stats_with_counts",
)


def changes_arguments(op: torch._ops.OpOverload) -> bool:
    """Whether each call of an op may write to its arguments."""
    return op._schema.is_mutable or op._schema.name in _WRITE_UNSAID


def may_write_unsaid(name: str) -> bool:
    """Whether an operator may write to arguments of which its schema does not say that, for all
    that is known: one that is not of aten. name: with its namespace."""
    return not name.startswith(("aten.", "aten::"))


@functools.lru_cache(maxsize=1024)
def out_of_place(op: torch._ops.OpOverload) -> torch._ops.OpOverload | None:
    """`aten.relu` for `aten.relu_`; None for what writes nothing or has no such form."""
    name = op._schema.name.removeprefix("aten::")
    if op.namespace != "aten" or not op._schema.is_mutable or not name.endswith("_"):
        return None
    written = [a for a in op._schema.arguments if a.alias_info and a.alias_info.is_write]
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    if packet is None or written != op._schema.arguments[:1]:
        return None
    functional = getattr(packet, op._overloadname, None)
    if functional is None or functional._schema.is_mutable:
        return None
    names = [[a.name for a in each._schema.arguments] for each in (op, functional)]
    return functional if names[0] == names[1] else None


@functools.lru_cache(maxsize=1024)
def arguments_returned(op: torch._ops.OpOverload) -> tuple[int | None, ...]:
    """For each result of `op`, the number of the argument that it writes and gives back."""
    numbers = {
        alias: number
        for number, argument in enumerate(op._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
        for alias in argument.alias_info.before_set
    }
    sets = (each.alias_info.before_set if each.alias_info else () for each in op._schema.returns)
    return tuple(next((numbers.get(alias) for alias in each), None) for each in sets)


def argument_given(node: torch.fx.Node, number: int) -> Any:
    """What a call gives for an argument of its op's schema, None where it leaves that out."""
    if number < len(node.args):
        return node.args[number]
    return node.kwargs.get(node.target._schema.arguments[number].name)


def mutates_beyond(graph: torch.fx.Graph) -> bool:
    """Whether `graph` writes anything else than intermediate results that no other tensor
    shares the memory of, so that out-of-place forms do not suffice."""
    writers = [node for node in graph.nodes if mutates(node)]
    if not writers:
        return False
    members = _by_storage(graph)
    order = {node: number for number, node in enumerate(graph.nodes)}
    return not all(_is_simple(node, members, order) for node in writers)


def mutates(node: torch.fx.Node) -> bool:
    """Whether a call writes its arguments."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.is_mutable or writes_statistics(node)
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return False
    bodies = (
        getattr(node.graph.owning_module, str(a.target), None)
        for a in node.args
        if isinstance(a, torch.fx.Node) and a.op == "get_attr"
    )
    return any(mutates(inner) for body in bodies if body for inner in body.graph.nodes)


def writes_statistics(node: torch.fx.Node) -> bool:
    """Whether a call writes running statistics, which schemas do not say: one that is training."""
    is_norm = node.target._schema.name in _NORMS
    return is_norm and argument_given(node, 3) is not None and bool(argument_given(node, 5))


def statistics_given(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The running statistics of a norm that writes them."""
    given = (argument_given(node, number) for number in (3, 4))
    return [each for each in given if isinstance(each, torch.fx.Node)]


def written_arguments(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The tensors that a call of an op writes."""
    statistics = statistics_given(node) if writes_statistics(node) else []
    return [*_annotated_arguments(node, writes=True), *statistics]


def aliased_arguments(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The tensors whose memory the results of a call of an op may have."""
    returns = node.target._schema.returns
    if not any(each.alias_info is not None for each in returns):
        return []
    return _annotated_arguments(node, writes=False)


def _annotated_arguments(node: torch.fx.Node, writes: bool) -> list[torch.fx.Node]:
    given = [
        argument_given(node, number)
        for number, argument in enumerate(node.target._schema.arguments)
        if argument.alias_info is not None and (argument.alias_info.is_write or not writes)
    ]
    return [each for each in flatten_results(given) if isinstance(each, torch.fx.Node)]


def steps_of_write(node: torch.fx.Node) -> int:
    """By how many steps the version of what a call writes goes on. An instance norm copies to
    running statistics what the batch norm within has written."""
    name = node.target._schema.name
    if name in _MULTIPLIED_AND_ADDED:
        return 1 if node.args[1] == 1 else 2
    return int(name not in _UNCOUNTED)


def _by_storage(graph: torch.fx.Graph) -> dict[int, list[torch.fx.Node]]:
    members = defaultdict(list)
    for node in graph.nodes:
        values = flatten_results(node.meta.get("val"))
        for storage in {storage_of(v) for v in values if isinstance(v, torch.Tensor)}:
            members[storage].append(node)
    return members


def _is_simple(
    node: torch.fx.Node,
    members: dict[int, list[torch.fx.Node]],
    order: dict[torch.fx.Node, int],
) -> bool:
    """The tensor that `node` writes is the result of a chain of ops, each written by the
    next, and nobody looks at it but through the chain's end."""
    if not isinstance(node.target, torch._ops.OpOverload) or out_of_place(node.target) is None:
        return False
    if not isinstance(node.meta.get("val"), torch.Tensor):
        return False  # it writes a list of tensors
    given = (each.meta["val"] for each in node.all_input_nodes)
    tensors = (each for each in given if isinstance(each, torch.Tensor))
    if any(each.dtype != node.meta["val"].dtype for each in tensors):
        return False  # the written tensor's type rules, not the promoted one
    chain = [each for each in members[storage_of(node.meta["val"])] if order[each] <= order[node]]
    if chain[0].op != "call_function" or chain[-1] is not node:
        return False
    for written, writer in zip(chain, chain[1:]):
        if writer.args[0] is not written or not mutates(writer):
            return False
        if any(order[user] > order[writer] for user in written.users):
            return False
    return True


def detaches_new_copy(node: torch.fx.Node) -> bool:
    """Of a constant: `torch.tensor([1.0, 2.0])` becomes `detach_(lift_fresh_copy(constant))`."""
    if node.target is not torch.ops.aten.detach_.default:
        return False
    copy = node.args[0]
    is_node = isinstance(copy, torch.fx.Node)
    return is_node and copy.target is torch.ops.aten.lift_fresh_copy.default
