# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of a call that records gradients which PyTorch does not record: those under no_grad."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch

from weft.frontend.builder import Builder
from weft.frontend.fallback import flatten_results
from weft.frontend.graph import Value
from weft.frontend.inplace import argument_given, mutates
from weft.frontend.locations import location_of
from weft.frontend.lowered import Unsupported
from weft.frontend.pairs import Pair
from weft.frontend.strides import storage_of

_SETS_MODE = torch.ops.higher_order.wrap_with_set_grad_enabled
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


def refuse_unrecorded_writes(program: torch.export.ExportedProgram) -> None:
    """A tensor that is written under no_grad keeps the gradient that it had before, whatever has
    been written: no graph of values says that.

    Raises: Unsupported.
    """
    marked = {
        storage_of(node.meta["val"])
        for node in program.graph.find_nodes(op="placeholder")
        if isinstance(node.meta["val"], torch.Tensor) and node.meta["val"].requires_grad
    }
    if marked:
        _follow(program.graph_module, marked, recorded=True)


def _follow(module: torch.fx.GraphModule, marked: set[int], recorded: bool) -> None:
    """marked: the storages of tensors that may have a gradient; those that the body's calls give
    are added."""
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            mode = bool(node.args[0]) if node.target is _SETS_MODE else recorded
            for each in node.args:
                if isinstance(each, torch.fx.Node) and each.op == "get_attr":
                    body = getattr(module, str(each.target), None)
                    if isinstance(body, torch.fx.GraphModule):
                        _follow(body, marked, mode)
            continue
        if not any(_tensors(each.meta.get("val"), marked) for each in node.all_input_nodes):
            continue
        if recorded:
            marked |= {storage_of(each) for each in _floats(node.meta.get("val"))}
            marked |= {storage_of(each) for each in _written(node)}
        elif any(storage_of(each) in marked for each in _written(node)):
            raise Unsupported(
                "a write under no_grad to a tensor that has a gradient",
                location_of(node),
                str(node.target),
            )


def _floats(value: Any) -> list[torch.Tensor]:
    found = (each for each in flatten_results(value) if isinstance(each, torch.Tensor))
    return [each for each in found if each.is_floating_point() or each.is_complex()]


def _tensors(value: Any, marked: set[int]) -> bool:
    return any(storage_of(each) in marked for each in _floats(value))


def _written(node: torch.fx.Node) -> list[torch.Tensor]:
    if not isinstance(node.target, torch._ops.OpOverload) or not mutates(node):
        return []
    written = [
        argument_given(node, number)
        for number, argument in enumerate(node.target._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    given = [each for one in written for each in flatten_results(one)]
    values = (each.meta.get("val") for each in given if isinstance(each, torch.fx.Node))
    return [each for value in values for each in _floats(value)]
