# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which outputs are inputs, or views of inputs or of one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from weft.frontend.lowered import InputSource, Unsupported, ViewOf
from weft.frontend.strides import is_static, order_of, share_elements, storage_of
from weft.frontend.twins import Twins


@dataclass
class Aliases:
    """The inputs and outputs of an exported graph by storage.

    sources: one per input placeholder. mutated: output nodes whose value becomes the new
    content of an input.
    """

    graph: torch.fx.Graph
    sources: dict[torch.fx.Node, InputSource]
    mutated: dict[torch.fx.Node, torch.fx.Node]

    def views(
        self, outputs: list[torch.fx.Node | None]
    ) -> tuple[list[ViewOf | None], list[torch.fx.Node]]:
        """For each output leaf the view that it is, None if it owns its storage; and tensors that
        are none of the leaves, of which leaves that share elements are views, as if they stood
        behind the leaves."""
        # What has as many rows as data say is packed where it is returned, and a view of nothing.
        outputs = [
            node if node is not None and is_static(node.meta["val"]) else None for node in outputs
        ]
        self._twins = Twins(self.graph, [node for node in outputs if node is not None])
        owners: dict[int, tuple[int, torch.fx.Node]] = {}
        for position, node in enumerate(outputs):
            if node is not None and _covers_storage(self._twin(node)):
                owners.setdefault(storage_of(self._twin(node)), (position, node))
        roots: dict[int, torch.fx.Node] = {}
        for node in self.sources:
            # No result shows the memory of the others.
            if self._twins.has_memory_of(node.meta["val"]):
                roots.setdefault(storage_of(self._twin(node)), node)
        views = [None if node is None else self._view(node, roots, owners) for node in outputs]
        bases = self._hidden_bases([n for n, view in zip(outputs, views) if n and view is None])
        for number, base in enumerate(bases):
            owners[storage_of(self._twin(base))] = (len(outputs) + number, base)
        if bases:
            views = [None if node is None else self._view(node, roots, owners) for node in outputs]
        self._refuse_shared([n for n, view in zip(outputs, views) if n and view is None])
        return views, bases

    def _twin(self, node: torch.fx.Node) -> torch.Tensor:
        return self._twins.of(self.mutated.get(node, node))

    def _sharing(
        self, nodes: list[torch.fx.Node], together: Callable[[Sequence[torch.Tensor]], bool]
    ) -> list[int]:
        """The storages whose parts that these results show lie `together`."""
        members: dict[int, dict[int, torch.Tensor]] = {}
        for twin in map(self._twin, nodes):
            members.setdefault(storage_of(twin), {})[id(twin)] = twin
        return [key for key, each in members.items() if together([*each.values()])]

    def _hidden_bases(self, nodes: list[torch.fx.Node]) -> list[torch.fx.Node]:
        """What several results are views of, where that is neither an input nor a result, and
        nothing is written: a base is returned as it was made."""
        sharing = self._sharing(nodes, lambda values: len(values) > 1)
        if not sharing or self.mutated or _writes(self.graph):
            return []
        fakes = {storage_of(each.meta["val"]) for each in nodes}
        made = [
            node
            for node in self.graph.nodes
            for value in [node.meta.get("val")]
            if isinstance(value, torch.Tensor) and is_static(value) and storage_of(value) in fakes
        ]
        bases: dict[int, torch.fx.Node] = {}
        for node in made:
            twin = self._twin(node)
            if storage_of(twin) in sharing and _covers_storage(twin):
                bases.setdefault(storage_of(twin), node)
        return [*bases.values()]

    def _refuse_shared(self, nodes: list[torch.fx.Node]) -> None:
        """Results that show the same elements of what is neither an input nor a result."""
        if self._sharing(nodes, share_elements):
            raise Unsupported("results share elements of a tensor that is none")

    def _view(self, node, roots, owners) -> ViewOf | None:
        twin = self._twin(node)
        storage = storage_of(twin)
        if storage in roots:
            base, base_twin = self.sources[roots[storage]], self._twin(roots[storage])
        elif storage in owners and owners[storage][1] is not node:
            base, owner = owners[storage]
            base_twin = self._twin(owner)
            # Of nothing, strides are as PyTorch's kernel happens to leave them.
            is_other = base_twin.numel() == 0 and twin is not base_twin
            if twin.dtype != base_twin.dtype or is_other:
                return None
        else:
            return None
        if twin.is_neg() != base_twin.is_neg():
            raise Unsupported("a lazily negated view of a tensor is returned")
        begins, rest = divmod(
            base_twin.storage_offset() * base_twin.dtype.itemsize, twin.dtype.itemsize
        )
        if rest:
            return None
        return ViewOf(
            base=base,
            identity=twin is base_twin,
            sizes=tuple(twin.shape),
            strides=tuple(twin.stride()),
            offset=twin.storage_offset() - begins,
            dtype=twin.dtype,
            conjugates=twin.is_conj() != base_twin.is_conj(),
        )


def _writes(graph: torch.fx.Graph) -> bool:
    targets = {node.target for node in graph.nodes} - {torch.ops.aten.detach_.default}
    return any(isinstance(t, torch._ops.OpOverload) and t._schema.is_mutable for t in targets)


def _covers_storage(value: torch.Tensor) -> bool:
    size = value.untyped_storage().nbytes()
    whole = value.storage_offset() == 0 and value.numel() * value.dtype.itemsize == size
    return whole and order_of(value) is not None
