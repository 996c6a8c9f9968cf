# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which outputs are inputs, or views of inputs or of one another.

torch.export keeps aliasing in the fake tensors it leaves on the nodes: two tensors share a
storage there exactly if they do in eager mode. What it does not keep is whether an output is
the input object itself; that is read from the ops between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy
import torch

from weft.frontend.lowered import InputSource, Unsupported, ViewOf
from weft.frontend.strides import is_static, order_of, storage_of

_DROPOUT = frozenset(
    f"aten.{name}.default" for name in ("dropout", "alpha_dropout", "feature_dropout")
)
# Ops that return their first argument itself when there is nothing to do.
_MAYBE_SELF = _DROPOUT | frozenset(
    f"aten.{name}"
    for name in (
        *("contiguous.default", "to.dtype", "to.dtype_layout", "to.device", "to.other"),
        *("type_as.default", "resolve_conj.default", "resolve_neg.default", "lift_fresh.default"),
    )
)


@dataclass
class Aliases:
    """The inputs and outputs of an exported graph by storage.

    sources: one per input placeholder. mutated: output nodes whose value becomes the new
    content of an input.
    """

    graph: torch.fx.Graph
    sources: dict[torch.fx.Node, InputSource]
    mutated: dict[torch.fx.Node, torch.fx.Node]

    def __post_init__(self) -> None:
        # Dropout that does nothing returns its argument, but a copy on fake tensors.
        self._copied: dict[int, int] = {}
        for node in self.graph.nodes:
            if _is_idle_dropout(node) and _same_geometry(node, node.args[0]):
                self._copied[_fake_storage(node)] = self._storage(node.args[0])

    def _storage(self, node: torch.fx.Node) -> int:
        storage = _fake_storage(node)
        return self._copied.get(storage, storage)

    def views(self, outputs: list[torch.fx.Node | None]) -> list[ViewOf | None]:
        """For each output leaf the view that it is, None if it owns its storage."""
        roots = {}
        for node in self.sources:
            roots.setdefault(self._storage(node), node)
        for node, root in self.mutated.items():
            roots.setdefault(self._storage(node), root)
        owners: dict[int, tuple[int, torch.fx.Node]] = {}
        for position, node in enumerate(outputs):
            if node is not None and _covers_storage(node):
                owners.setdefault(self._storage(node), (position, node))
        views = [
            None if node is None else self._view(position, node, roots, owners)
            for position, node in enumerate(outputs)
        ]
        self._refuse_hidden_bases([n for n, view in zip(outputs, views) if n and view is None])
        return views

    def _refuse_hidden_bases(self, nodes: list[torch.fx.Node]) -> None:
        """Results that show the same elements of what is neither an input nor a result."""
        members: dict[int, list[torch.fx.Node]] = {}
        for node in dict.fromkeys(map(self._itself, nodes)):
            members.setdefault(self._storage(node), []).append(node)
        if any(_share_elements([n.meta["val"] for n in each]) for each in members.values()):
            raise Unsupported("results share elements of a tensor that is none")

    def _view(self, position, node, roots, owners) -> ViewOf | None:
        value, storage = node.meta["val"], self._storage(node)
        if storage in roots:
            root = roots[storage]
            base, base_value = self.sources[root], root.meta["val"]
            identity = self._itself(node) is root
        elif storage in owners and owners[storage][1] is not node:
            base, owner = owners[storage]
            base_value, identity = owner.meta["val"], self._itself(node) is self._itself(owner)
        else:
            return None
        if value.dtype.itemsize != base_value.dtype.itemsize:
            return None
        return ViewOf(
            base=base,
            identity=identity,
            sizes=tuple(value.shape),
            strides=tuple(value.stride()),
            offset=value.storage_offset() - base_value.storage_offset(),
            dtype=value.dtype,
        )

    def _itself(self, node: torch.fx.Node) -> torch.fx.Node:
        """The node that made the object which this node returns."""
        while True:
            if node in self.mutated:
                return self.mutated[node]
            if node.op != "call_function" or not self._returns_first_argument(node):
                return node
            node = node.args[0]

    def _returns_first_argument(self, node: torch.fx.Node) -> bool:
        if not node.args or not isinstance(node.args[0], torch.fx.Node):
            return False
        if str(node.target) in _MAYBE_SELF:
            first = node.args[0]
            return self._storage(node) == self._storage(first) and _same_geometry(node, first)
        schema = getattr(node.target, "_schema", None)
        if schema is None or len(schema.returns) != 1 or not schema.arguments:
            return False
        written = schema.arguments[0].alias_info
        returned = schema.returns[0].alias_info
        return bool(written and returned and written.is_write and returned.is_write)


def _is_idle_dropout(node: torch.fx.Node) -> bool:
    return str(node.target) in _DROPOUT and (node.args[1] == 0 or not node.args[2])


def _same_geometry(node: torch.fx.Node, other: torch.fx.Node) -> bool:
    x, y = node.meta["val"], other.meta["val"]
    return x.shape == y.shape and x.stride() == y.stride() and x.dtype == y.dtype


def _fake_storage(node: torch.fx.Node) -> int:
    return storage_of(node.meta["val"])


def _share_elements(values: list[torch.Tensor]) -> bool:
    """Tensors of one storage: whether any element is shown by two of them."""
    values = [value for value in values if is_static(value) and value.numel()]
    if len(values) < 2:
        return False
    if len({value.dtype for value in values}) > 1:
        return True
    itemsize = values[0].dtype.itemsize
    shown = numpy.zeros(values[0].untyped_storage().nbytes() // itemsize, bool)
    for value in values:
        view = numpy.lib.stride_tricks.as_strided(
            shown[value.storage_offset() :], value.shape, value.stride()
        )
        if view.any():
            return True
        view[...] = True
    return False


def _covers_storage(node: torch.fx.Node) -> bool:
    value = node.meta["val"]
    size = value.untyped_storage().nbytes()
    whole = value.storage_offset() == 0 and value.numel() * value.dtype.itemsize == size
    return whole and order_of(value) is not None
