# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of an op's definition; the build makes `weft._graph_definitions` of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attribute:
    """One that an op's definition has. kind: "i64", "f64", "bool", "str", "i64s", "elements",
    "symbol", or the mnemonic of an enum, whose cases are then given."""

    name: str
    kind: str
    optional: bool = False
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Definition:
    """What the dialect says of an op. operands: names, with "?" for an optional and "*" for a
    variadic one. constraints: name → text. inferred: whether the types of the results follow from
    operands and attributes."""

    name: str
    summary: str
    operands: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    constraints: dict[str, str]
    inferred: bool

    @property
    def has_segments(self) -> bool:
        """Whether the number of operands does not tell which of them are left out."""
        return sum(name.endswith(("?", "*")) for name in self.operands) > 1
