# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes under `torch.no_grad()` to what has just been computed, as of `F.gaussian_nll_loss`, which
clamps a copy: the elements change, their derivative is that of the elements before.

Such a write becomes an op of its own, which a program can be differentiated through, where nothing
has read the elements before, and their own derivative does not read them. Others are refused
(`unseen_writes.py`).
"""

from __future__ import annotations

import operator

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from weft.frontend.graph import Value
from weft.frontend.inplace import mutates, out_of_place
from weft.frontend.strides import storage_of
from weft.frontend.table import Site, lowers

_aten = torch.ops.aten
_library = torch.library.Library("weft_histories", "DEF")
_library.define("kept(Tensor before, Tensor after) -> Tensor")
kept = torch.ops.weft_histories.kept.default

# Their results are new tensors, which their derivatives do not read.
_UNREAD = frozenset(
    (
        *(_aten.clone.default, _aten.add.Tensor, _aten.sub.Tensor, _aten.mul.Tensor),
        *(_aten.neg.default, _aten.linear.default, _aten.matmul.default, _aten.abs.default),
    )
)


def _after(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    return after.clone()


_library.impl("kept", _after, "CPU")
torch.library.register_fake("weft_histories::kept", _after, lib=_library)


@lowers("weft_histories.kept.default")
def _kept(site: Site, before: Value, after: Value):
    return site.builder.with_slopes(after, (before, 1.0))


def keep_histories(program: ExportedProgram) -> None:
    """Rewrites the program's writes of that kind."""
    graph = program.graph
    for region in list(graph.nodes):
        if region.target is not torch.ops.higher_order.wrap_with_set_grad_enabled:
            continue
        if region.args[0] or len(region.args) < 3:
            continue
        body = getattr(program.graph_module, str(region.args[1].target)).graph
        if (place := _place_of_write(region, body)) is not None:
            _keep_history(region, body, place)
    program.graph_module.recompile()


def _place_of_write(region: torch.fx.Node, body: torch.fx.Graph) -> int | None:
    """Which of the region's operands its body writes, if that is all that it does."""
    *placeholders, writer, output = body.nodes
    if not all(user.target is operator.getitem for user in region.users):
        return None
    if any(each.op != "placeholder" for each in placeholders) or not mutates(writer):
        return None
    if not isinstance(writer.target, torch._ops.OpOverload) or out_of_place(writer.target) is None:
        return None
    if pytree.tree_leaves(output.args) != [writer] or writer.args[0] not in placeholders:
        return None
    place = placeholders.index(writer.args[0])
    written = region.args[2 + place]
    is_operand = [each is written for each in region.all_input_nodes]
    if written.target not in _UNREAD or sum(is_operand) != 1 or len(writer.users) != 1:
        return None
    if sum(each is writer.args[0] for each in pytree.tree_leaves((writer.args, writer.kwargs))) > 1:
        return None
    read = {*written.users, *(user for item in region.users for user in item.users)}
    if any(user.op == "output" for user in read):
        return None  # a result is known by its node's name
    earlier = _ahead_of(region)
    if any(user in earlier for user in written.users) or _is_shared(written, earlier):
        return None
    return place if _like(_functional_result(writer), written.meta["val"]) else None


def _ahead_of(region: torch.fx.Node) -> set[torch.fx.Node]:
    found = set()
    for node in region.graph.nodes:
        if node is region:
            break
        found.add(node)
    return found


def _is_shared(written: torch.fx.Node, earlier: set[torch.fx.Node]) -> bool:
    storage = storage_of(written.meta["val"])
    return any(
        isinstance(value, torch.Tensor) and storage_of(value) == storage
        for node in earlier - {written}
        for value in pytree.tree_leaves(node.meta.get("val"))
    )


def _functional_result(writer: torch.fx.Node) -> torch.Tensor:
    functional = out_of_place(writer.target)
    assert functional is not None
    args, kwargs = pytree.tree_map_only(
        torch.fx.Node, lambda node: node.meta["val"], (writer.args, writer.kwargs)
    )
    with torch.no_grad():
        result: torch.Tensor = functional(*args, **kwargs)
    return result


def _like(x: torch.Tensor, y: torch.Tensor) -> bool:
    return (x.dtype, x.shape, x.stride()) == (y.dtype, y.shape, y.stride())


def _keep_history(region: torch.fx.Node, body: torch.fx.Graph, place: int) -> None:
    (writer,) = (each for each in body.nodes if each.op == "call_function")
    made = _functional_result(writer)
    writer.target, writer.meta["val"] = out_of_place(writer.target), made
    body.owning_module.recompile()
    if "val" in region.meta:
        region.meta["val"] = (made,)
    written, graph = region.args[2 + place], region.graph
    readers = [user for user in written.users if user is not region]
    items = list(region.users)
    with graph.inserting_after(region):
        after = graph.call_function(operator.getitem, (region, 0))
    with graph.inserting_after(after):
        history = graph.call_function(kept, (written, after))
    after.meta["val"] = made
    history.meta.update({**written.meta, "val": made.clone()})
    for reader in readers:
        reader.replace_input_with(written, history)
    for item in items:
        item.replace_all_uses_with(history)
        graph.erase_node(item)
