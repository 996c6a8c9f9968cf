# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running statistics that a norm reads in eval mode, and that may have changed before its backward.

A batch norm in training mode writes them without an increment of their version. PyTorch's
derivative of an earlier call in eval mode holds them by reference and reads the new values, while
everything that the forward computed stays as it was. The programs do the same
(`compiler/Autodiff/Partition.cpp`). Computing the forward again needs the old values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_MEAN, _VARIANCE = 1, 2  # operands of weft.batch_norm


def statistics_of(document: dict[str, Any]) -> tuple[int, ...]:
    """The numbers of the inputs of a graph, given as JSON, that norms read as statistics."""
    found = {
        node["in"][place]
        for node in document["nodes"]
        if node["op"] == "weft.batch_norm"
        for place in (_MEAN, _VARIANCE)
    }
    return tuple(sorted(number for number in found if number < len(document["inputs"])))


class Statistics:
    """The statistics of a call. numbers: of the graph's inputs. then: their values in the call,
    flattened and joined, in the widest of their types."""

    def __init__(self, numbers: Sequence[int], inputs: Sequence[torch.Tensor]) -> None:
        self._numbers = numbers
        self._then = _flat(numbers, inputs)

    def are_others(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether they have been written since. inputs: of the graph, as they are now."""
        return not torch.equal(_flat(self._numbers, inputs), self._then)

    def then(self, inputs: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
        """The values in the call, by the input's number, in memory of their own."""
        parts = self._then.split([inputs[number].numel() for number in self._numbers])
        return {
            number: part.reshape(inputs[number].shape).to(inputs[number].dtype, copy=True)
            for number, part in zip(self._numbers, parts, strict=True)
        }


def _flat(numbers: Sequence[int], inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([inputs[number].detach().reshape(-1) for number in numbers])
