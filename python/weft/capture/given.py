# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands in the place of `Tracing` where there is nothing to trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree

from weft import frontend
from weft.capture.exported_facts import digest_of, strides_of
from weft.capture.op_values import Values, values_of
from weft.capture.outputs import Structure
from weft.capture.reachability import References
from weft.capture.signature import Declined, Signature
from weft.capture.snapshots import Snapshot
from weft.capture.trace import Inputs
from weft.capture.tracing import Captured


class Given:
    """Captures nothing: the program was exported by the user."""

    rng = "torch"

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        self.program = program

    def references(self) -> References:
        return References(tensors=[*self.program.state_dict.values()])

    def resolver(self, references: References) -> Callable[[str], torch.Tensor]:
        return self._tensor

    def values(
        self, args: tuple, kwargs: dict[str, Any], state: Snapshot, inputs: Inputs
    ) -> Values:
        return values_of(self.program, inputs)

    def capture(
        self,
        args: tuple,
        kwargs: dict[str, Any],
        references: References,
        state: Snapshot,
        signature: Signature,
        training: bool = False,
    ) -> Captured:
        """Raises: Declined, if the call is not the one that was exported."""
        leaves, structure = pytree.tree_flatten((args, kwargs))
        if structure != self.program.call_spec.in_spec:
            raise Declined("the program was exported for other arguments")
        placeholders = self.program.graph.find_nodes(op="placeholder")
        for node, leaf in zip(placeholders[-len(leaves) :] if leaves else (), leaves, strict=True):
            if not _is_like(leaf, node.meta["val"]):
                raise Declined(f"the program was exported for another {node.name}")
        start = time.perf_counter()
        lowered = frontend.lower(self.program, training=training)
        seconds = time.perf_counter() - start
        structure = Structure.of(self.program.call_spec.out_spec)
        strides, digest = strides_of(self.program), digest_of(self.program)
        return Captured(lowered, self.resolver(references), structure, strides, digest, seconds)

    def _tensor(self, name: str) -> torch.Tensor:
        found = self.program.state_dict.get(name)
        return self.program.constants[name] if found is None else found


class NotCaptured:
    """There is no program, for a reason that holds for all calls."""

    rng = "torch"

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def references(self) -> References:
        return References()

    def resolver(self, references: References) -> Callable[[str], torch.Tensor]:
        raise KeyError(self.reason)

    def capture(self, *call: Any) -> Captured:
        """Raises: Declined."""
        raise Declined(self.reason)


def _is_like(leaf: Any, example: Any) -> bool:
    if not isinstance(leaf, torch.Tensor):
        return type(leaf) is type(example) and leaf == example
    return (
        isinstance(example, torch.Tensor)
        and leaf.dtype == example.dtype
        and tuple(leaf.shape) == tuple(example.shape)
        and leaf.stride() == example.stride()
    )
