# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The line of the user's source that an FX node comes from."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterator

import torch

from weft.frontend.lowered import Location

_FRAME = re.compile(r'File "(?P<file>.+?)", line (?P<line>\d+), in (?P<function>.+)')
_TORCH = os.path.dirname(torch.__file__) + os.sep
_WEFT = os.path.dirname(os.path.dirname(__file__)) + os.sep


# The user's lines that those of generated code stand for, by file name and line.
_generated: dict[str, dict[int, Location]] = {}


@contextlib.contextmanager
def standing_for(file: str, lines: dict[int, Location]) -> Iterator[None]:
    """While it is entered, lines of the generated code `file` are reported as `lines`."""
    _generated[file] = lines
    try:
        yield
    finally:
        del _generated[file]


def location_of(node: torch.fx.Node) -> Location | None:
    """The innermost frame outside torch (torch's innermost, if it has no user), None if unknown."""
    trace = node.meta.get("stack_trace")
    return _innermost(trace) if trace else None


@functools.lru_cache(maxsize=4096)
def _innermost(trace: str) -> Location | None:
    frames = [
        Location(match["file"], int(match["line"]), match["function"].strip())
        for match in _FRAME.finditer(trace)
        if not match["file"].startswith(_WEFT)
    ]
    frames = [_generated.get(frame.file, {}).get(frame.line, frame) for frame in frames]
    users = [frame for frame in frames if not frame.file.startswith(_TORCH)]
    return (users or frames or [None])[-1]
