# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a program that was captured by observing a call to the folder of WEFT_DUMP."""

from __future__ import annotations

import os
import textwrap
from typing import Any


def leave(program: Any, number: int) -> None:
    """Writes `observed-<number>.txt` to WEFT_DUMP's folder, if there is one: what the program
    assumes, the operations of a replay, and those of them that change something other than tensors,
    or tell something to the outside world."""
    folder = os.environ.get("WEFT_DUMP")
    if not folder:
        return
    lines = program.log()
    effects = [
        line for line, (*_, changes, tells) in zip(lines, program.records()) if changes or tells
    ]
    sections = {"guards": program.guards(), "operations": lines, "effects": effects}
    text = "\n".join(
        f"{name}:\n" + textwrap.indent("".join(f"{line}\n" for line in section), "  ")
        for name, section in sections.items()
    )
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"observed-{number}.txt"), "w", encoding="utf-8") as file:
        file.write(text)
