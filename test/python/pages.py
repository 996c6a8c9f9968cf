# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The blocks of Python on a page of the documentation."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[int, str]]:
    """The blocks, each with the number of lines before it."""
    text = page.read_text("utf-8")
    return [(text[: m.start(1)].count("\n"), m[1]) for m in _BLOCK.finditer(text)]


def run(page: Path, names: dict[str, Any]) -> None:
    """Runs the blocks one after another in `names`. Errors and captured programs have the page's
    lines."""
    text, path = page.read_text("utf-8"), str(page)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    for above, block in blocks(page):
        exec(compile("\n" * above + block, path, "exec"), names)
