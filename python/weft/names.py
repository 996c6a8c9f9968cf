# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What names are bound to, to notice when a call binds them anew, and to undo what tracing did."""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Any

_MISSING = object()


@dataclass
class Bindings:
    """What cells, global names and classes' attributes are bound to."""

    cells: list[tuple[types.CellType, Any]] = field(default_factory=list)
    names: list[tuple[dict[str, Any], str, Any]] = field(default_factory=list)
    classes: list[tuple[type, dict[str, Any]]] = field(default_factory=list)

    def add_cell(self, cell: types.CellType) -> None:
        self.cells.append((cell, _contents(cell)))

    def add_name(self, namespace: dict[str, Any], name: str) -> None:
        self.names.append((namespace, name, namespace.get(name, _MISSING)))

    def add_class(self, kind: type) -> None:
        self.classes.append((kind, dict(vars(kind))))

    def hold(self) -> bool:
        """Whether cells and names are bound to what they were; classes have a key of their own."""
        return all(_contents(cell) is value for cell, value in self.cells) and all(
            space.get(name, _MISSING) is value for space, name, value in self.names
        )

    def restore(self) -> None:
        for cell, value in self.cells:
            if value is _MISSING:
                del cell.cell_contents
            else:
                cell.cell_contents = value
        # What is bound as it was stays untouched: dicts and classes count their changes.
        for namespace, name, value in self.names:
            if value is _MISSING:
                namespace.pop(name, None)
            elif namespace.get(name, _MISSING) is not value:
                namespace[name] = value
        for kind, members in self.classes:
            for name in vars(kind).keys() - members.keys():
                delattr(kind, name)
            for name, value in members.items():
                if vars(kind).get(name, _MISSING) is not value:
                    setattr(kind, name, value)


def same_items(one: dict, other: dict) -> bool:
    """Whether two dicts have the same names for the same objects."""
    return one.keys() == other.keys() and all(one[name] is other[name] for name in one)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled
        return _MISSING
