# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences, which are lists, and optionals, which are their value or None."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.onnx.table import Node, op
from weft.onnx.values import number, numbers


@op("SequenceConstruct", since=11)
def sequence_construct(node: Node, *items: Tensor) -> list[Tensor]:
    return list(items)


@op("SequenceEmpty", "dtype", since=11)
def sequence_empty(node: Node) -> list[Tensor]:
    return []


@op("SequenceAt", since=11)
def sequence_at(node: Node, sequence: list[Tensor], place: Tensor) -> Tensor:
    return sequence[number(place)]


@op("SequenceInsert", since=11)
def sequence_insert(
    node: Node, sequence: list[Tensor], item: Tensor, place: Tensor | None = None
) -> list[Tensor]:
    at = len(sequence) if place is None else number(place)
    return [*sequence[:at], item, *sequence[at:]]


@op("SequenceErase", since=11)
def sequence_erase(node: Node, sequence: list[Tensor], place: Tensor | None = None) -> list[Tensor]:
    at = (len(sequence) - 1 if place is None else number(place)) % len(sequence)
    return [*sequence[:at], *sequence[at + 1 :]]


@op("SequenceLength", since=11)
def sequence_length(node: Node, sequence: list[Tensor]) -> Tensor:
    return torch.tensor(len(sequence), dtype=torch.int64)


@op("ConcatFromSequence", "axis new_axis", since=11)
def concat_from_sequence(node: Node, sequence: list[Tensor]) -> Tensor:
    join = torch.stack if node.get("new_axis", 0) else torch.cat
    return join(sequence, node.get("axis"))


@op("SplitToSequence", "axis keepdims", since=11)
def split_to_sequence(node: Node, x: Tensor, sizes: Tensor | None = None) -> list[Tensor]:
    axis = node.get("axis", 0)
    if sizes is None:
        parts = torch.split(x, 1, axis)
        return list(parts) if node.get("keepdims", 1) else [part.squeeze(axis) for part in parts]
    return list(torch.split(x, number(sizes) if sizes.ndim == 0 else numbers(sizes), axis))


@op("Optional", "type", since=15)
def optional(node: Node, value: Any = None) -> Any:
    return value


@op("OptionalHasElement", since=15)
def optional_has_element(node: Node, value: Any = None) -> Tensor:
    return torch.tensor(value is not None)


@op("OptionalGetElement", since=15)
def optional_get_element(node: Node, value: Any) -> Any:
    if value is None:
        raise ValueError("expected an optional with an element, found an empty one")
    return value
