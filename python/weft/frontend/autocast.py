# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions of a program under autocast, which torch.export keeps as bodies without conversions.

Running the program's decompositions inlines the bodies and makes the conversions ops, but
the ops' lines become those of the bodies' generated code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch

from weft.frontend.locations import location_of
from weft.frontend.lowered import Unsupported

# In a node's meta: it is computed where no gradients are recorded.
CONSTANT = "weft.constant"

_RECURRENT = frozenset(
    getattr(torch.ops.aten, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
)
_GENERATED = re.compile(
    r'File "(?P<file><eval_with_key>[^"]*)", line \d+, in \w+\n\s*(?P<name>\w+)'
)


def switches_autocast_on(module: torch.fx.GraphModule) -> bool:
    """Whether some region of the program, at any depth, is one."""
    return any(
        node.target is torch.ops.higher_order.wrap_with_autocast and node.args[2]
        for body in bodies(module)
        for node in body.graph.nodes
    )


def refuse_recurrent(module: torch.fx.GraphModule) -> None:
    """Autocast casts some of what cells compute, so that results have other types than export
    says. Raises: Unsupported."""
    for body in bodies(module):
        for node in body.graph.nodes:
            if getattr(node.target, "overloadpacket", None) in _RECURRENT:
                raise Unsupported(
                    "a recurrent net under autocast", location_of(node), str(node.target)
                )


def restore_lines(graph: torch.fx.Graph, before: torch.fx.GraphModule) -> None:
    """Gives the nodes of `graph`, made from `before`, the user's lines."""
    by_file = {body.forward.__code__.co_filename: body for body in bodies(before)}
    for node in graph.nodes:
        frames = list(_GENERATED.finditer(node.meta.get("stack_trace") or ""))
        if not frames or frames[-1]["file"] not in by_file:
            continue
        for origin in by_file[frames[-1]["file"]].graph.nodes:
            if origin.name == frames[-1]["name"]:
                node.meta["stack_trace"] = origin.meta.get("stack_trace")


def mark_constants(graph: torch.fx.Graph, before: torch.fx.GraphModule) -> None:
    """Marks the nodes of `graph`, made from `before`, that come of a region without gradients,
    whose body has been inlined like any other.

    Raises: Unsupported, if there is such a region of which no node tells that it comes from it.
    """
    off = {
        body.forward.__code__.co_filename
        for body, has_gradients in _with_modes(before, True)
        if not has_gradients
    }
    found = set()
    for node in graph.nodes if off else ():
        frames = list(_GENERATED.finditer(node.meta.get("stack_trace") or ""))
        if frames and frames[-1]["file"] in off:
            node.meta[CONSTANT] = True
            found.add(frames[-1]["file"])
    if found != off:
        raise Unsupported("a region without gradients that torch has inlined")


def _with_modes(
    module: torch.fx.GraphModule, has_gradients: bool
) -> Iterator[tuple[torch.fx.GraphModule, bool]]:
    """Each body, with whether gradients are recorded in it."""
    yield module, has_gradients
    for node in module.graph.nodes:
        sets = node.target is torch.ops.higher_order.wrap_with_set_grad_enabled
        mode = bool(node.args[0]) if sets else has_gradients
        for each in node.args if node.op == "call_function" else ():
            if isinstance(each, torch.fx.Node) and each.op == "get_attr":
                body = getattr(module, str(each.target), None)
                if isinstance(body, torch.fx.GraphModule):
                    yield from _with_modes(body, mode)


def bodies(module: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    return (each for each in module.modules() if isinstance(each, torch.fx.GraphModule))
