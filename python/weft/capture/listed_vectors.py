# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of numbers that code in a trace has made of a vector, and makes a tensor of again, as with
`pack_padded_sequence(x, lengths.tolist())`: that tensor is the vector, whatever the numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from weft.capture.traced_constants import node_of


@dataclass(frozen=True)
class _Element:
    """vector: as it was when it had this version."""

    vector: torch.Tensor
    version: int
    place: int


class ListedVectors:
    """Those of one trace, in which `vector.tolist()` is `[each.item() for each in
    vector.unbind()]`."""

    def __init__(self) -> None:
        self._elements: dict[torch.fx.Node, _Element] = {}
        self._numbers: dict[int, tuple[torch.SymInt, _Element]] = {}  # by address

    def unbound(
        self, vector: torch.Tensor, parts: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, ...]:
        for place, part in enumerate(parts):
            if (node := node_of(part)) is not None:
                self._elements[node] = _Element(vector, vector._version, place)
        return parts

    def read(self, tensor: torch.Tensor, number: Any) -> Any:
        """number: the only one of `tensor`. It is given back."""
        node = node_of(tensor)
        if node in self._elements and isinstance(number, torch.SymInt):
            self._numbers[id(number)] = number, self._elements[node]
        return number

    def of(self, data: Any) -> torch.Tensor | None:
        """The vector of which `data` has all numbers in their order; None if there is none."""
        if type(data) not in (list, tuple) or not all(id(each) in self._numbers for each in data):
            return None
        elements = [self._numbers[id(each)][1] for each in data]
        vector = elements[0].vector if elements else None
        if vector is None or len(vector) != len(elements):
            return None
        is_whole = all(
            each.vector is vector and each.version == vector._version and each.place == place
            for place, each in enumerate(elements)
        )
        return vector if is_whole else None
