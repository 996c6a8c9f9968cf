# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors without values that share memory, lie in it and are one object as eager's are.

Fake tensors know that nearly as well. They forget which ops return their argument itself, copy
where nothing is to be done, and give dims of size 1 other strides. So PyTorch makes the views of a
program once more, on memory that nobody touches.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from weft.frontend.fallback import flatten_results
from weft.frontend.inplace import argument_given, arguments_returned
from weft.frontend.lowered import Unsupported
from weft.frontend.numbers import NUMBER
from weft.frontend.strides import is_static, storage_of

_DROPOUT = frozenset(
    f"aten.{name}.default" for name in ("dropout", "alpha_dropout", "feature_dropout")
)


class Twins:
    """The twins of the values of some nodes of an exported graph."""

    def __init__(self, graph: torch.fx.Graph, nodes: Iterable[torch.fx.Node]) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._twins: dict[torch.fx.Node, Any] = {}
        needed = _needed(graph, nodes)
        for node in graph.nodes:
            if node in needed:
                self._twins[node] = self._made(node)

    def of(self, node: torch.fx.Node) -> Any:
        """The twin of what the node gives; what is no tensor is its own. A number, on which a view
        may depend, is known from then on."""
        if NUMBER in node.meta:
            return node.meta[NUMBER].fixed()
        if node not in self._twins:
            self._twins[node] = self._from_fake(node.meta["val"])
        return self._twins[node]

    def has_memory_of(self, fake: torch.Tensor) -> bool:
        """Whether a twin of a tensor in its memory has been made."""
        return fake.layout != torch.strided or storage_of(fake) in self._storages

    def _made(self, node: torch.fx.Node) -> Any:
        if not _shown_by(node):
            return self._from_fake(node.meta["val"])
        if node.target is operator.getitem:
            return self.of(node.args[0])[node.args[1]]
        if node.target._schema.is_mutable and torch.Tag.inplace_view not in node.target.tags:
            return self._written(node)
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self.of)
        with torch.no_grad():
            return node.target(*args, **kwargs)

    def _written(self, node: torch.fx.Node) -> Any:
        """The arguments that a call writes and gives back."""
        numbers = arguments_returned(node.target)
        values = flatten_results(node.meta["val"])
        twins = tuple(
            self._from_fake(value) if number is None else self.of(argument_given(node, number))
            for number, value in zip(numbers, values, strict=True)
        )
        return twins[0] if isinstance(node.meta["val"], torch.Tensor) else twins

    def _from_fake(self, value: Any) -> Any:
        return pytree.tree_map_only(torch.Tensor, self._lying, value)

    def _lying(self, fake: torch.Tensor) -> torch.Tensor:
        if fake.layout != torch.strided:
            raise Unsupported(f"a tensor of layout {fake.layout}")
        if not is_static(fake):
            raise Unsupported("a size depends on data")
        storage = self._storages.get(storage_of(fake))
        if storage is None:
            size = fake.untyped_storage().nbytes()
            try:
                storage = torch.UntypedStorage(size)
            except RuntimeError as error:
                raise Unsupported(f"there is no memory for a tensor of {size} bytes") from error
            self._storages[storage_of(fake)] = storage
        tensor = torch.empty(0, dtype=fake.dtype, device="cpu")
        return tensor.set_(storage, fake.storage_offset(), fake.shape, fake.stride())


def _needed(graph: torch.fx.Graph, nodes: Iterable[torch.fx.Node]) -> set[torch.fx.Node]:
    """The calls through which `nodes` show other nodes' memory, and what turns it in place."""
    needed = set(nodes)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(_shown_by(node))
    storages = {storage for node in needed for storage in _storages(node)}
    turned = (node for node in graph.nodes if torch.Tag.inplace_view in _tags(node))
    return needed | {node for node in turned if storages.intersection(_storages(node))}


def _shown_by(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The arguments of a call that its result is, or may be, or is a view of."""
    if node.target is operator.getitem:
        # Of results some of which have as many elements as data say, each is its own.
        return [node.args[0]] if _is_all_static(node.args[0]) else []
    if _is_idle_dropout(node):
        return [node.args[0]]
    if not isinstance(node.target, torch._ops.OpOverload):
        return []
    storages = _storages(node)
    return [each for each in node.all_input_nodes if not storages.isdisjoint(_storages(each))]


def _is_all_static(node: torch.fx.Node) -> bool:
    values = flatten_results(node.meta["val"])
    return all(is_static(value) for value in values if isinstance(value, torch.Tensor))


def _is_idle_dropout(node: torch.fx.Node) -> bool:
    return str(node.target) in _DROPOUT and (node.args[1] == 0 or not node.args[2])


def _storages(node: torch.fx.Node) -> set[int]:
    values = flatten_results(node.meta.get("val"))
    tensors = (value for value in values if isinstance(value, torch.Tensor))
    return {storage_of(tensor) for tensor in tensors if tensor.layout == torch.strided}


def _tags(node: torch.fx.Node) -> Iterable[torch.Tag]:
    return getattr(node.target, "tags", ())
