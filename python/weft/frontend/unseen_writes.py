# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes that a graph which is differentiated would not make as PyTorch does.

Of those that autograd does not see, under `torch.no_grad()` or through `detach()`, what is written
keeps the history that it had: its derivative is that of the elements before. A functional graph has
the elements after, which come of no history, and would lose the gradient. Those within a region of
torch.utils.checkpoint are made once more by its backward, as of running statistics; so are random
numbers drawn, and others, unless the region keeps the generator's state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from weft.frontend.fallback import flatten_results
from weft.frontend.inplace import (
    argument_given,
    mutates,
    statistics_given,
    steps_of_write,
    writes_statistics,
)
from weft.frontend.locations import location_of
from weft.frontend.lowered import Location, Unsupported
from weft.frontend.strides import storage_of
from weft.frontend.walk import CHECKPOINTED, DRAWS_ANEW

_WITHOUT = (torch.ops.aten.detach.default, torch.ops.aten.detach_.default)


def refuse_unseen_writes(program: ExportedProgram) -> None:
    """Refuses writes in a program to be differentiated that autograd would not see. Raises:
    Unsupported."""
    specs = program.graph_signature.input_specs
    placeholders = program.graph.find_nodes(op="placeholder")
    may_learn = (InputKind.USER_INPUT, InputKind.PARAMETER)
    given = (n for n, spec in zip(placeholders, specs) if spec.kind in may_learn)
    has_history = {node for node in given if _may_require(node)}
    storages = {s for node in has_history for s in _storages(node)}
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        for written, seen in _written(node):
            if not (seen and written in has_history) and storages.intersection(_storages(written)):
                raise Unsupported(
                    "a write that autograd does not see", _line_of_write(node), str(node.target)
                )
        if node.target not in _WITHOUT and not has_history.isdisjoint(node.all_input_nodes):
            if _may_require(node) and not _is_without_gradients(node):
                has_history.add(node)
                storages |= _storages(node)
                # A write to what had none, that gives it one, and to what it is a view of.
                for written, seen in _written(node):
                    has_history.update(_viewed(written) if seen else ())


def _viewed(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """It, and the tensors that it is a view of, with their history."""
    yield node
    while isinstance(node.target, torch._ops.OpOverload) and node.target not in _WITHOUT:
        base = node.args[0] if node.args else None
        if not isinstance(base, torch.fx.Node) or _storages(base).isdisjoint(_storages(node)):
            return
        yield (node := base)


def refuse_repeated_effects(program: ExportedProgram) -> None:
    """What the backward would write or draw once more, of a program that is to be differentiated.

    Raises: Unsupported.
    """
    outside = {s for x in program.graph.find_nodes(op="placeholder") for s in _storages(x)}
    for node in _all_nodes(program.graph):
        marks = node.meta.get("custom", ()) if node.op == "call_function" else ()
        if DRAWS_ANEW in marks and _draws(node):
            raise Unsupported(
                "random numbers within torch.utils.checkpoint(preserve_rng_state=False), whose "
                "backward draws others",
                location_of(node),
                str(node.target),
            )
        if CHECKPOINTED in marks:
            written = (s for each, _ in _written(node) for s in _storages(each))
            is_norm = isinstance(node.target, torch._ops.OpOverload) and writes_statistics(node)
            is_region = any(mutates(x) for _, body in _regions(node) for x in body.nodes)
            if is_norm or is_region or not outside.isdisjoint(written):
                raise Unsupported(
                    "a write within torch.utils.checkpoint, which the backward makes once more",
                    location_of(node),
                    str(node.target),
                )


def steps_of_versions(program: ExportedProgram) -> dict[str, int]:
    """By how many steps their versions go on, for each input that is written, by its node's
    name."""
    steps = _steps(program.graph)
    placeholders = program.graph.find_nodes(op="placeholder")
    return {
        x.name: max(steps[s] for s in written)
        for x in placeholders
        if (written := _storages(x) & steps.keys())
    }


def _steps(graph: torch.fx.Graph) -> Counter[int]:
    """The writes of each storage that are steps of its version, by the graph's regions as well. A
    storage that is written without one has 0."""
    steps: Counter[int] = Counter()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        for given, body in _regions(node):
            within = _steps(body)
            for placeholder, outer in zip(body.find_nodes(op="placeholder"), given):
                found = [within[s] for s in _storages(placeholder) & within.keys()]
                if isinstance(outer, torch.fx.Node) and found:
                    steps.update(dict.fromkeys(_storages(outer), max(found)))
        if isinstance(node.target, torch._ops.OpOverload):
            step = steps_of_write(node)
            for written, _ in _written(node):
                steps.update(dict.fromkeys(_storages(written), step))
            if writes_statistics(node):
                for written in statistics_given(node):
                    steps.update(dict.fromkeys(_storages(written), step))
    return steps


def _all_nodes(graph: torch.fx.Graph) -> Iterator[torch.fx.Node]:
    """The nodes of a graph and of its regions."""
    for node in graph.nodes:
        yield node
        for _, body in _regions(node):
            yield from _all_nodes(body)


def _draws(node: torch.fx.Node) -> bool:
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    schema = node.target._schema.arguments
    places = [n for n, each in enumerate(schema) if each.name in ("train", "training")]
    return not any(argument_given(node, place) is False for place in places)


def _may_require(node: torch.fx.Node) -> bool:
    """Whether a result is of numbers that autograd follows, or there is none to tell."""
    values = [v for v in flatten_results(node.meta.get("val")) if isinstance(v, torch.Tensor)]
    return not values or any(v.dtype.is_floating_point or v.dtype.is_complex for v in values)


def _written(node: torch.fx.Node) -> Iterator[tuple[torch.fx.Node, bool]]:
    """What a call writes, and whether autograd sees it."""
    if isinstance(node.target, torch._ops.OpOverload):
        for number, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for given in flatten_results(argument_given(node, number)):
                    if isinstance(given, torch.fx.Node):
                        yield given, True
    for given, body in _regions(node):
        inner = body.find_nodes(op="placeholder")
        storages = {s for each in body.nodes for n, _ in _written(each) for s in _storages(n)}
        for placeholder, outer in zip(inner, given):
            if isinstance(outer, torch.fx.Node) and storages.intersection(_storages(placeholder)):
                yield outer, not _is_without_gradients(node)


def _line_of_write(node: torch.fx.Node) -> Location | None:
    """Of a region, which has no line of its own, that of its first write."""
    bodies = (body for _, body in _regions(node))
    writers = [each for body in bodies for each in body.nodes if any(_written(each))]
    return location_of(node) or next(map(_line_of_write, writers), None)


def _regions(node: torch.fx.Node) -> Iterator[tuple[tuple, torch.fx.Graph]]:
    """The arguments and the body of a region."""
    for number, given in enumerate(node.args):
        if isinstance(given, torch.fx.Node) and given.op == "get_attr":
            body = getattr(node.graph.owning_module, str(given.target), None)
            if isinstance(body, torch.fx.GraphModule):
                yield node.args[number + 1 :], body.graph


def _is_without_gradients(node: torch.fx.Node) -> bool:
    return node.target is torch.ops.higher_order.wrap_with_set_grad_enabled and not node.args[0]


def _storages(node: torch.fx.Node) -> set[int]:
    values = flatten_results(node.meta.get("val"))
    return {storage_of(value) for value in values if isinstance(value, torch.Tensor)}
