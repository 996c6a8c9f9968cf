# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The optimised graph of one program as text: what is fused, what a step of a loop does, and what
is differentiated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.ir.functions import Function
    from weft.ir.module import Module

# Ops that only move or name elements take no part in fusion.
_MOVES = frozenset({"constant", "reshape", "broadcast_in_dim", "slice", "transpose", "func.return"})


def graph_text(title: str, halves: Iterable[tuple[str, str]]) -> str:
    """The text. title: the shapes of the call. halves: the program's halves, each as its role, ""
    if there are no gradients, and its IR at the stage `kernels`.

    Kernels of several ops are named `FusionGroup_0` and so on; a program that trains is the only
    `DifferentiableGraph_0`, whose halves follow one another.
    """
    from weft.ir import Module

    parts, groups = [f"graph for {title}"], 0
    for role, text in halves:
        module = Module.parse(text, stage="kernels")
        names = _group_names(module, groups)
        groups += len(names)
        heading = f"DifferentiableGraph_0, {role}:" if role else "main:"
        lines = [*_loops(module), *_groups(module, names)]
        bodies = [_renamed(str(function), names) for function in _ordered(module)]
        parts.append("\n".join([heading, *(f"  {line}" for line in lines)]))
        parts += bodies
    return "\n\n".join(parts) + "\n"


def _ordered(module: Module) -> list[Function]:
    """The functions, entries and steps before kernels."""
    return sorted(module.functions, key=_is_kernel)


def _is_kernel(function: Function) -> bool:
    return "weft.kernel" in str(function).partition("{\n")[0]


def _work(function: Function) -> list[str]:
    return [op.name for op in function.body if op.name not in _MOVES]


def _group_names(module: Module, first: int) -> dict[str, str]:
    """New names for kernels that consist of several ops."""
    fused = [f.name for f in module.functions if _is_kernel(f) and len(_work(f)) > 1]
    return {name: f"FusionGroup_{first + number}" for number, name in enumerate(fused)}


def _renamed(text: str, names: dict[str, str]) -> str:
    return re.sub(r"@(\w+)", lambda found: "@" + names.get(found[1], found[1]), text)


def _groups(module: Module, names: dict[str, str]) -> list[str]:
    return [
        f"{name}: {' + '.join(_work(module[function]))}, called at "
        f"{_times(len(module[function].callers))}"
        for function, name in names.items()
    ]


def _times(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"


def _loops(module: Module) -> list[str]:
    """Each loop, with the kernels that one step calls."""
    found = []
    for function in module.functions:
        for op in function.body:
            if op.name == "loop":
                step = op.attributes["step"].lstrip("@")
                calls = sum(each.name == "func.call" for each in module[step].body)
                kernels = "1 kernel" if calls == 1 else f"{calls} kernels"
                steps = op.attributes["length"]
                found.append(f"loop over {step}: {steps} steps of {kernels} each")
    return found
