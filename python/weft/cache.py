# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder of compiled programs: where it is, how large it is, and how to empty it.

runtime/Cache.h writes the artifacts, compiled/verification_records.py the records beside them,
capture/kept_traces.py the traces that lead to them.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from weft import _core

# What Weft puts there, and nothing else that may lie in a folder of the user's choice.
_ARTIFACT = re.compile(r"[0-9a-f]{40}\.so")
_RECORD = re.compile(r"[0-9a-f]{40}\.so\.[0-9a-f]{24}\.verified")
_TRACE = re.compile(r"[0-9a-f]{16}-[0-9a-f]{40}\.trace")
DRAFT_OF_TRACE = ".trace-"
_UNFINISHED = re.compile(r"\.verified-\w+|\.trace-\w+|[0-9a-f]{40}\.\d+\.\d+\.so")
_ABANDONED = 24 * 60 * 60  # seconds, as for the compiler's drafts


class Contents(NamedTuple):
    """programs: artifacts. bytes: of all files, the records of comparisons too."""

    programs: int
    bytes: int


def path() -> Path:
    """WEFT_CACHE_DIR, or weft in XDG_CACHE_HOME or ~/.cache. It need not exist."""
    return Path(_core.Cache.default_folder())


def size() -> Contents:
    """What `clear` would free."""
    return _sum(_files())


def clear() -> Contents:
    """Removes the compiled programs; gives what was freed. Other files in the folder stay.

    Programs in use, of this process or another, run on: they are in memory. What another process
    is writing just now stays as well. The next compilation of anything starts anew.
    Raises: OSError, if a file may not be removed.
    """
    return _sum(each for each in _files() if _removed(each[0]))


def _files() -> Iterator[tuple[Path, os.stat_result]]:
    folder, yesterday = path(), time.time() - _ABANDONED
    for place in (folder, folder / "drafts"):
        for file in _listed(place):
            try:
                status = file.lstat()
            except FileNotFoundError:  # another process was faster
                continue
            old = status.st_mtime < yesterday
            ours = any(kind.fullmatch(file.name) for kind in (_ARTIFACT, _RECORD, _TRACE))
            if stat.S_ISREG(status.st_mode) and (
                (ours and place == folder) or (old and _UNFINISHED.fullmatch(file.name))
            ):
                yield file, status


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _removed(file: Path) -> bool:
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True


def _sum(files: Iterator[tuple[Path, os.stat_result]]) -> Contents:
    programs = size = 0
    for file, status in files:
        programs += _ARTIFACT.fullmatch(file.name) is not None
        size += status.st_size
    return Contents(programs, size)
