#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refuses misspelt or colonless FileCheck directives, which FileCheck itself ignores.

Reads the lit tests that git knows, or the files given. In a comment, a word that begins with a
check prefix of the file must be a directive of FileCheck with its colon; a word that is one or
two letters away from a directive is taken for a misspelt one.
"""

from __future__ import annotations

import re
import sys

from lint import check

SUFFIXES = ("NEXT", "SAME", "NOT", "DAG", "LABEL", "EMPTY", "COUNT")
PREFIX_OPTION = re.compile(r"--?check-prefix(?:es)?[= ]([\w,-]+)")
# A directive opens its comment: `// CHECK-NEXT: text`.
COMMENT = re.compile(r"^\s*(?://|#|;)+\s*([A-Z][A-Z0-9_]*(?:[-_ ]{0,2}[A-Z]+)*)(-\d+)?(.*)$")


def prefixes_of(text: str) -> set[str]:
    """The check prefixes that the RUN lines of `text` name, beside CHECK."""
    names = {"CHECK"}
    for option in PREFIX_OPTION.findall(text):
        names.update(option.split(","))
    return names


def distance(a: str, b: str) -> int:
    """Levenshtein's distance, in which swapping two neighbours costs 1 (optimal alignment)."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, start=1):
        row = [i]
        for j, y in enumerate(b, start=1):
            cost = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, rows[i - 2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def fault(word: str, count: str, rest: str, prefixes: set[str]) -> str | None:
    """What is wrong with the comment `word``count``rest`, or None."""
    valid = prefixes | {f"{p}-{s}" for p in prefixes for s in SUFFIXES if s != "COUNT"}
    if count:
        valid = {f"{p}-COUNT" for p in prefixes}
    if word in valid:
        # `CHECK{LITERAL}:` is FileCheck's modifier for text taken as it stands.
        return None if re.match(r"(\{LITERAL\})?:", rest) else "expected a colon after"
    closest = min(sorted(valid), key=lambda name: distance(word, name))
    if word.startswith(tuple(prefixes)) or distance(word, closest) <= 2 < len(closest) - 2:
        return f"expected {closest}: but found"
    return None


def violations(path: str, text: str) -> list[str]:
    """One diagnostic for each faulty directive in the test `path` with content `text`."""
    prefixes = prefixes_of(text)
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = COMMENT.match(line)
        wrong = match and fault(match[1], match[2] or "", match[3], prefixes)
        if wrong:
            found.append(f"{path}:{number}: {wrong} {match[1]}{match[2] or ''}")
    return found


if __name__ == "__main__":
    sys.exit(check(__doc__, violations, ["test/compiler/*.mlir", "test/compiler/*.test"]))
