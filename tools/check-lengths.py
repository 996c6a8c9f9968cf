#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refuses files of more than 500 lines: a file holds one concept, and is read at one sitting.

Reads the sources and tests that git knows, or those given.
"""

from __future__ import annotations

import sys

from lint import check

MOST_LINES = 500
PATTERNS = ["*.c", "*.cpp", "*.h", "*.mlir", "*.py", "*.td", "CMakeLists.txt"]


def violations(path: str, text: str) -> list[str]:
    """One diagnostic if `path`, a file with content `text`, is too long."""
    lines = len(text.splitlines())
    return [f"{path}: expected at most {MOST_LINES} lines, found {lines}"] * (lines > MOST_LINES)


if __name__ == "__main__":
    sys.exit(check(__doc__, violations, PATTERNS))
