# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the checks of this folder share: which files they read, and how they answer."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def check(doc: str, violations: Callable[[str, str], list[str]], patterns: list[str]) -> int:
    """The exit status of a check: 1 if it printed a violation, else 0.

    doc: its first line is the description. violations: of a path and the text there.
    patterns: the files that are read by default, of those that git knows.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("files", nargs="*", help=f"by default {' '.join(patterns)}")
    files = parser.parse_args().files
    if not files:
        listed = ["git", "ls-files", *patterns]
        files = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
    found = [v for file in files for v in violations(file, Path(file).read_text())]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0
