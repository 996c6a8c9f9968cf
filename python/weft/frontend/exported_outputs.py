# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The outputs of an exported program: effects, results, views and constants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from weft.frontend.aliases import Aliases
from weft.frontend.builder import Builder
from weft.frontend.chosen import Packer
from weft.frontend.graph import Value
from weft.frontend.lowered import ChosenRows, InputSource, OutputTarget, Unsupported, ViewOf
from weft.frontend.masked import Masked
from weft.frontend.pairs import Pair, join, shown_real
from weft.frontend.strides import order_of

_MUTATIONS = {
    OutputKind.BUFFER_MUTATION: "buffer",
    OutputKind.USER_INPUT_MUTATION: "input",
    OutputKind.PARAMETER_MUTATION: "buffer",
}


def views_of(
    program: ExportedProgram, inputs: Sequence[tuple[torch.fx.Node, InputSource | None]]
) -> tuple[list[ViewOf | None], list[torch.fx.Node]]:
    """For each leaf of the returned pytree the view that it is; and the nodes of what leaves are
    views of that is no leaf itself (`Aliases.views`)."""
    sources = {
        node: source
        for node, source in inputs
        if source is not None and isinstance(node.meta.get("val"), torch.Tensor)
    }
    by_name = {node.name: node for node in program.graph.nodes}
    signature = program.graph_signature
    by_target = {
        spec.target or spec.arg.name: by_name[spec.arg.name]
        for spec in signature.input_specs
        if isinstance(spec.arg, TensorArgument)
    }
    mutated = {
        by_name[spec.arg.name]: by_target[spec.target]
        for spec in signature.output_specs
        if spec.kind in _MUTATIONS
    }
    leaves = [
        by_name[spec.arg.name] if isinstance(spec.arg, TensorArgument) else None
        for spec in signature.output_specs
        if spec.kind == OutputKind.USER_OUTPUT
    ]
    return Aliases(program.graph, sources, mutated).views(leaves)


def outputs_of(
    program: ExportedProgram,
    builder: Builder,
    values: Sequence[Any],
    views: Sequence[ViewOf | None],
    bases: Sequence[tuple[torch.fx.Node, Any]],
    steps: Mapping[str, int],
) -> list[OutputTarget]:
    """What is done with each result. bases: with their values, behind the leaves (`views_of`).
    steps: of the versions of inputs that are written, by their nodes' names.
    """
    specs = program.graph_signature.output_specs
    users = {
        spec.arg.name: number
        for number, spec in enumerate(
            s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT
        )
    }
    placeholders = {s.target or s.arg.name: s.arg.name for s in program.graph_signature.input_specs}
    first_leaf = sum(spec.kind != OutputKind.USER_OUTPUT for spec in specs)
    nodes = {node.name: node for node in program.graph.nodes}
    results: dict[tuple[int, str], int] = {}

    def result(value: Value, name: str = "", order: Sequence[int] | None = None) -> int:
        """name: of the tensor that the user gets, with the strides of eager mode where these are
        dense; equal values of two names are two tensors. order: in memory, of one without."""
        if (id(value), name) not in results:
            if name:
                order = order_of(shown_real(nodes[name].meta["val"]))
            results[id(value), name] = builder.graph.add_output(value, order)
        return results[id(value), name]

    packer = Packer(builder)
    targets, leaf = [], 0
    for spec, value in zip(specs, values, strict=True):
        if spec.kind in _MUTATIONS:
            if isinstance(value, Pair):
                raise Unsupported("complex numbers are written in place")
            kind = _MUTATIONS[spec.kind]
            where = {"index": users[spec.target]} if kind == "input" else {"name": spec.target}
            count = steps.get(placeholders[spec.target], 1)
            target = OutputTarget(kind, result=result(value), steps=count, **where)
            targets.append(target)
            continue
        if spec.kind != OutputKind.USER_OUTPUT:
            raise Unsupported(f"an output of kind {spec.kind.name.lower()}")
        view = views[leaf]
        if isinstance(spec.arg, TensorArgument):
            _refuse_lazy(nodes[spec.arg.name].meta["val"], builder)
        if view is not None:
            if isinstance(view.base, int):
                view = _rebased(view, view.base + first_leaf)
            is_read = _is_read(nodes[spec.arg.name])
            targets.append(OutputTarget("user", index=leaf, view=view, is_read=is_read))
        elif isinstance(value, Masked):
            _refuse_gaps(nodes[spec.arg.name], value)
            packed, count = packer.pack(value)
            by_column = bool(value.columns) or value.table is not None
            chosen = ChosenRows(result(count), value.dim, by_column, value.column)
            number = result(packed, order=(1, 0) if by_column else None)
            targets.append(OutputTarget("user", index=leaf, result=number, chosen=chosen))
        elif isinstance(value, Pair):
            node = nodes[spec.arg.name]
            is_conj = node.meta["val"].is_conj()
            if is_conj:
                value = Pair(value.real, builder.unary("neg", value.imag))
            number = result(join(builder, value), spec.arg.name)
            target = OutputTarget("user", index=leaf, result=number, is_read=_is_read(node))
            targets.append(replace(target, is_complex=True, is_conj=is_conj))
        elif isinstance(value, Value) and not isinstance(spec.arg, TensorArgument):
            raise Unsupported("a result is a number that depends on data")
        elif isinstance(value, Value):
            number, is_read = result(value, spec.arg.name), _is_read(nodes[spec.arg.name])
            targets.append(OutputTarget("user", index=leaf, result=number, is_read=is_read))
        else:
            targets.append(OutputTarget("constant", index=leaf, value=value))
        leaf += 1
    for node, value in bases:
        if not isinstance(value, Value):
            raise Unsupported("results share elements of a tensor that is none")
        targets.append(OutputTarget("hidden", result=result(value, node.name)))
    return targets


def _refuse_lazy(value: torch.Tensor, builder: Builder) -> None:
    """Raises: Unsupported."""
    if value.is_neg():
        raise Unsupported("a lazily negated tensor is returned")
    if value.is_conj() and builder.graph.training:
        raise Unsupported("gradients are wanted of a lazily conjugated tensor")


def _is_read(node: torch.fx.Node) -> bool:
    """Whether anything is computed of it from which autograd may lead to it."""
    if all(user.op == "output" for user in node.users):
        return False
    while getattr(node.target, "is_view", False):
        if node.target is torch.ops.aten.detach.default:
            return False
        node = node.args[0]
    return True


def _refuse_gaps(node: torch.fx.Node, value: Masked) -> None:
    """Chosen elements are packed in the order of their dims."""
    packed = [math.prod(value.value.shape[dim + 1 :]) for dim in range(value.dim, value.value.rank)]
    if not value.columns and list(node.meta["val"].stride()[value.dim :]) != packed:
        raise Unsupported("chosen elements that are returned with gaps between them")


def _rebased(view: ViewOf, base: int) -> ViewOf:
    return replace(view, base=base)
