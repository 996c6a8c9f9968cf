#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the packages of python/weft import one another along the arrows of the house.

The table says what each package may import when it is loaded, and what it may import late: inside
a function, or for type checkers alone. Prints each import that no arrow allows and exits with 1 if
there was one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from lint import check

ROOT = "python/weft/"


@dataclass(frozen=True)
class Package:
    """What the modules of one package may import beside their own package."""

    at_load: frozenset[str]
    late: frozenset[str] = frozenset()


def _package(at_load: str, late: str = "") -> Package:
    return Package(frozenset(at_load.split()), frozenset(late.split()))


# From what all use to what nothing uses; a module beside the packages is one of its own.
PACKAGES = {
    "errors": _package(""),
    "config": _package("errors"),
    "cache": _package("_core"),
    "machine": _package("_core cache errors"),
    "dialect": _package("errors"),
    "frontend": _package("_graph_definitions _graph_ops dialect errors"),
    "artifacts": _package("_core _build errors frontend", late="_compiler"),
    "capture": _package("_core cache config errors frontend"),
    "gradients": _package("_core artifacts config errors frontend", late="compiled"),
    "reporting": _package("_core artifacts errors machine", late="compiled frontend training"),
    "observe": _package("_capture _core capture config errors frontend", late="compiled"),
    "compiled": _package(
        "_build _core artifacts capture config errors frontend gradients observe reporting",
        late="_autograd ir tune",
    ),
    "dynamo": _package("compiled"),
    "onnx": _package("compiled errors"),
    "ir": _package(
        "_compiler _core _graph_definitions _graph_ops artifacts capture compiled dialect errors "
        "frontend reporting"
    ),
    "training": _package("artifacts capture compiled config errors frontend gradients ir"),
    "te": _package("_core artifacts errors machine", late="ir"),
    "dlpack": _package("errors te"),
    "tune": _package("_build _core artifacts errors te", late="_compiler compiled"),
    "benchmark": _package("_build _core compiled errors"),
    "cli": _package("benchmark compiled errors ir reporting tune", late="_core onnx"),
    "__main__": _package("cli"),
    "__init__": _package(
        "_core errors",
        late="artifacts cache capture compiled config dlpack ir onnx te training tune",
    ),
}


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imports(node: ast.AST, late: bool) -> Iterator[tuple[int, str, bool]]:
    """Line, package or module of weft, and whether it is imported late. A public function that is
    imported from `weft` itself is none."""
    for child in ast.iter_child_nodes(node):
        found: list[str] = []
        if isinstance(child, ast.ImportFrom) and child.module == "weft":
            found = [alias.name for alias in child.names if _is_module(alias.name)]
        elif isinstance(child, ast.ImportFrom) and (child.module or "").startswith("weft."):
            found = [str(child.module).split(".")[1]]
        elif isinstance(child, ast.Import):
            found = [a.name.split(".")[1] for a in child.names if a.name.startswith("weft.")]
        yield from ((child.lineno, name, late) for name in found)
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _is_for_types(child)
        yield from _imports(child, late or inside)


def _is_module(name: str) -> bool:
    return name in PACKAGES or name in ("_autograd", "_build", "_compiler", "_core")


def violations(path: str, text: str) -> list[str]:
    """One diagnostic per import of `path`, a file with content `text`, that no arrow allows."""
    if not path.startswith(ROOT):
        return []
    own = path.removeprefix(ROOT).split("/")[0].removesuffix(".py")
    if own not in PACKAGES:
        return [f"{path}:1: expected a package of the table in tools/check-imports.py, found {own}"]
    arrows = PACKAGES[own]
    return [
        f"{path}:{line}: expected {own} not to import {name}{'' if late else ' when it is loaded'}"
        for line, name, late in _imports(ast.parse(text), late=False)
        if name != own and name not in arrows.at_load and not (late and name in arrows.late)
    ]


if __name__ == "__main__":
    sys.exit(check(__doc__, violations, ["python/weft/*.py"]))
