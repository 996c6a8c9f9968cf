# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which outputs are inputs, or views of inputs or of one another."""

from __future__ import annotations

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

    def views(self, outputs: list[torch.fx.Node | None]) -> list[ViewOf | None]:
        """For each output leaf the view that it is, None if it owns its storage."""
        # What has as many rows as data say is packed where it is returned, and a view of nothing.
        outputs = [
            node if node is not None and is_static(node.meta["val"]) else None for node in outputs
        ]
        self._twins = Twins(self.graph, [node for node in outputs if node is not None])
        roots: dict[int, torch.fx.Node] = {}
        for node in self.sources:
            roots.setdefault(storage_of(self._twin(node)), node)
        owners: dict[int, tuple[int, torch.fx.Node]] = {}
        for position, node in enumerate(outputs):
            if node is not None and _covers_storage(self._twin(node)):
                owners.setdefault(storage_of(self._twin(node)), (position, node))
        views = [None if node is None else self._view(node, roots, owners) for node in outputs]
        self._refuse_hidden_bases([n for n, view in zip(outputs, views) if n and view is None])
        return views

    def _twin(self, node: torch.fx.Node) -> torch.Tensor:
        return self._twins.of(self.mutated.get(node, node))

    def _refuse_hidden_bases(self, nodes: list[torch.fx.Node]) -> None:
        """Results that show the same elements of what is neither an input nor a result."""
        members: dict[int, dict[int, torch.Tensor]] = {}
        for twin in map(self._twin, nodes):
            members.setdefault(storage_of(twin), {})[id(twin)] = twin
        if any(share_elements([*each.values()]) for each in members.values()):
            raise Unsupported("results share elements of a tensor that is none")

    def _view(self, node, roots, owners) -> ViewOf | None:
        twin = self._twin(node)
        storage = storage_of(twin)
        if storage in roots:
            base, base_twin = self.sources[roots[storage]], self._twin(roots[storage])
        elif storage in owners and owners[storage][1] is not node:
            base, owner = owners[storage]
            base_twin = self._twin(owner)
            # Where nothing is shown, strides are as PyTorch's kernel happens to leave them.
            is_other = twin.numel() == 0 and twin is not base_twin
            if twin.dtype != base_twin.dtype or is_other:
                return None
        else:
            return None
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
        )


def _covers_storage(value: torch.Tensor) -> bool:
    size = value.untyped_storage().nbytes()
    whole = value.storage_offset() == 0 and value.numel() * value.dtype.itemsize == size
    return whole and order_of(value) is not None
