# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that torch would make functional, but otherwise than they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree

from weft.frontend.asking import ask, is_harmless, lays_out_otherwise
from weft.frontend.autocast import bodies
from weft.frontend.fallback import flatten_results
from weft.frontend.graph import Graph
from weft.frontend.inplace import (
    aliased_arguments,
    argument_given,
    arguments_returned,
    mutates,
    writes_statistics,
    written_arguments,
)
from weft.frontend.locations import location_of
from weft.frontend.lowered import Unsupported
from weft.frontend.strides import same_geometry, share_elements, shows_twice, storage_of
from weft.frontend.walk import Walk, live_nodes


def refuse_written_constants(program: ExportedProgram) -> None:
    """torch drops what is written to tensors that are no argument, parameter or buffer.

    Raises: Unsupported."""
    names = program.graph_signature.inputs_to_lifted_tensor_constants
    if not names:
        return
    # Metadata of an input and of its views may have memory of their own: schemas tell.
    constants: set[torch.fx.Node] = set()
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in names:
            constants.add(node)
        elif isinstance(node.target, torch._ops.OpOverload):
            written, aliased = written_arguments(node), aliased_arguments(node)
            if not constants.isdisjoint(written):
                reason = "it writes a tensor that is no argument, parameter or buffer"
                raise Unsupported(reason, location_of(node), str(node.target))
            if not constants.isdisjoint(aliased):
                constants.add(node)


def refuse_unfaithful(program: ExportedProgram) -> None:
    """Raises: Unsupported."""
    _refuse_writes(program)
    _refuse_dropped_errors(program)


def _refuse_writes(program: ExportedProgram) -> None:
    inputs = {
        storage_of(node.meta["val"])
        for node in program.graph.find_nodes(op="placeholder")
        if isinstance(node.meta["val"], torch.Tensor)
    }
    for body in bodies(program.graph_module):
        for node in body.graph.nodes:
            if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
                _refuse_write(node, inputs)


def _refuse_write(node: torch.fx.Node, inputs: set[int]) -> None:
    """inputs: the storages of the program's."""
    if writes_statistics(node):
        raise Unsupported(
            f"{node.target} writes running statistics, too", location_of(node), str(node.target)
        )
    returned = arguments_returned(node.target)
    for number, argument in enumerate(node.target._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        for given in flatten_results(argument_given(node, number)):
            if not isinstance(given, torch.fx.Node):
                continue
            reason = _unfaithful_write(node, given, inputs)
            if reason is None and argument.kwarg_only:
                made = None
                if number in returned:
                    made = flatten_results(node.meta["val"])[returned.index(number)]
                reason = _unfaithful_out(node, given, made)
            if reason is not None:
                raise Unsupported(reason, location_of(node), str(node.target))


def _unfaithful_write(node: torch.fx.Node, given: torch.fx.Node, inputs: set[int]) -> str | None:
    """given: the argument that is written."""
    value = given.meta["val"]
    if torch.Tag.inplace_view in node.target.tags:
        is_same = same_geometry(value, node.meta["val"])
        if storage_of(value) in inputs and not (is_same and _keeps_version(node)):
            # The caller's tensor would have to be given another shape, or version.
            return f"{node.target} of an input, or of a view of one, whose version it counts up"
    elif shows_twice(value):
        return "a write to a tensor that shows an element twice"
    elif _draws(node) and not value.is_contiguous():
        return "random numbers drawn in another order"
    elif any(map(_leaves_gaps, _views_behind(given))):
        # What lies between the windows would be zeros.
        return "a write to windows of a tensor"
    elif any(_overlap(value, other.meta["val"]) for other in node.all_input_nodes):
        # PyTorch refuses it, or the result depends on the order of its loops.
        return "a write to elements that the op reads elsewhere"
    elif is_harmless(node):
        return _refusal(node)
    return None


def _unfaithful_out(
    node: torch.fx.Node, given: torch.fx.Node, made: torch.Tensor | None
) -> str | None:
    """made: what the call gives for the argument `given`, None where its schema does not say."""
    if _draws(node):
        return f"random numbers drawn into out= of {node.target}"
    if torch.Tag.pointwise not in node.target.tags and _reads(node, given):
        return f"{node.target} may read what it writes"
    if why := _refusal(node):
        return why
    if not torch._C._dispatch_has_kernel_for_dispatch_key(node.target.name(), "Meta"):
        # Torch then loses the write of some, and mixes up the results of others.
        return f"torch has no rule for the out= of {node.target}"
    if torch.Tag.pointwise not in node.target.tags and not given.meta["val"].is_contiguous():
        # Kernels of PyTorch write to some as if they were contiguous.
        return f"{node.target} into an out= that is not contiguous"
    is_kept = made is not None and same_geometry(given.meta["val"], made)
    if not is_kept or lays_out_otherwise(node):
        return f"{node.target} may give its out= another shape"
    return None


def _keeps_version(node: torch.fx.Node) -> bool:
    """Of an in-place view that shows what its argument has shown."""
    return node.target._schema.name in ("aten::detach_", "aten::resize_", "aten::resize_as_")


def _draws(node: torch.fx.Node) -> bool:
    return torch.Tag.nondeterministic_seeded in node.target.tags


def _refusal(node: torch.fx.Node) -> str | None:
    why = ask(node).refusal
    return None if why is None else f"PyTorch refuses {node.target}: {why}"


def _reads(node: torch.fx.Node, given: torch.fx.Node) -> bool:
    """Whether a call has another argument in the memory of `given`."""
    leaves = pytree.tree_leaves((node.args, node.kwargs))
    nodes = [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]
    storage = storage_of(given.meta["val"])
    return sum(storage_of(each.meta["val"]) == storage for each in nodes) > 1


def _refuse_dropped_errors(program: ExportedProgram) -> None:
    """Torch drops what nothing reads, and with it what it would raise."""
    live = live_nodes(program.graph, mutates)
    for node in program.graph.nodes:
        if node.op == "call_function" and node not in live and _may_raise(node):
            raise Unsupported(
                f"a result of {node.target} is not read", location_of(node), str(node.target)
            )


def _may_raise(node: torch.fx.Node) -> bool:
    try:
        return Walk(Graph()).emits_effects(node)
    except GuardOnDataDependentSymNode:  # nothing is known of sizes that values decide
        return True


def _overlap(x: torch.Tensor, y: Any) -> bool:
    """Whether two tensors show some element at different places."""
    if not isinstance(y, torch.Tensor) or storage_of(x) != storage_of(y):
        return False
    if same_geometry(x, y) and x.storage_offset() == y.storage_offset():
        return False
    return share_elements((x, y))


def _leaves_gaps(view: torch.fx.Node) -> bool:
    if view.target != torch.ops.aten.unfold.default:
        return False
    whole, dim, size, step = view.args
    return size != step or whole.meta["val"].shape[dim] % size != 0


def _views_behind(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The calls through which a tensor shows another's memory."""
    while node.op == "call_function" and node.args and isinstance(node.args[0], torch.fx.Node):
        schema = getattr(node.target, "_schema", None)
        if schema is None or not schema.arguments or schema.arguments[0].alias_info is None:
            return
        yield node
        node = node.args[0]
