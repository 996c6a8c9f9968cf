# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What names are bound to, to notice when a call binds them anew."""

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

    def changed(self) -> tuple[list[types.CellType], list[str]]:
        """Those that are not."""
        cells = [cell for cell, value in self.cells if _contents(cell) is not value]
        names = [n for space, n, value in self.names if space.get(n, _MISSING) is not value]
        return cells, names


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled
        return _MISSING
