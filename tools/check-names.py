#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refuses a second type of one name in a namespace: two headers could not be included at once.

Reads the headers that git knows, or those given, of all folders. clang-format leaves what a
namespace holds unindented, so its own types are those that begin a line.
"""

from __future__ import annotations

import re
import sys

from lint import check

NAMESPACE = re.compile(r"(?:inline )?namespace ([\w:]+) \{")
CLOSING = re.compile(r"\} // namespace\b")
# Not a declaration, the definition of a nested type, or a specialization.
TYPE = re.compile(
    r"(?:template <.*> )?(?:class|struct|union|enum class|enum) (\w+)(?: final)?(?: :| \{|$)"
)
ALIAS = re.compile(r"using (\w+) =")

# Where each type was first seen: (namespace, name) to path and line.
seen: dict[tuple[str, str], str] = {}


def violations(path: str, text: str) -> list[str]:
    """One diagnostic for each type of `path` whose name is that of another one."""
    found, inside = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if opened := NAMESPACE.match(line):
            inside.append(opened[1])
        elif CLOSING.match(line):
            inside.pop()
        elif inside and (declared := TYPE.match(line) or ALIAS.match(line)):
            place = f"{path}:{number}"
            name = ("::".join(inside), declared[1])
            first = seen.setdefault(name, place)
            if first != place:
                found.append(f"{place}: expected one type {'::'.join(name)}, found it at {first}")
    return found


if __name__ == "__main__":
    folders = ("compiler", "runtime", "capture", "python/bindings")
    sys.exit(check(__doc__, violations, [f"{folder}/*.h" for folder in folders]))
