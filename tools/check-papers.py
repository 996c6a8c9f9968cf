#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the form of decisions and measurements, and that links between documents resolve.

A decision has the four headings and fits a page; a measurement says when, where and by which
command it was made. Links of Markdown files must lead to a file of the repository and a heading
there, and paths must exist: those of files that documents name in backticks, and those of
documents that sources name. Reads the files that git knows, or those given.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from lint import check

HEADINGS = ["Context", "Choice", "Rejected", "Consequence"]
MOST_LINES = 60
MOST_COLUMNS = 100
DECISION = re.compile(r"docs/decisions/(\d{4})-[a-z0-9-]+\.md")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
DOCUMENT = re.compile(r"\bdocs/(?:[\w/-]+\.(?:md|svg)\b|(?:decisions|measurements)/[\w.-]+)")
FILE = re.compile(
    r"`((?:benchmarks|capture|compiler|docs|examples|python|runtime|test|tools)/[\w./-]+\.\w+)`"
)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PATTERNS = [
    "*.md",
    "capture/*",
    "compiler/*",
    "runtime/*",
    "python/*",
    "tools/*",
    "benchmarks/*",
    "examples/*",
]


def decision(path: str, text: str) -> Iterator[str]:
    """What is wrong with the form of a decision."""
    named = DECISION.fullmatch(path)
    if named is None:
        yield f"{path}: expected a name of four digits and words, as 0001-some-words.md"
        return
    lines = text.splitlines()
    title = lines[0] if lines else ""
    if not title.startswith(f"# {int(named[1])}. "):
        yield f"{path}:1: expected '# {int(named[1])}. ' and a title, found '{title}'"
    others = [other for other in Path(path).parent.glob(f"{named[1]}-*") if other != Path(path)]
    if others:
        yield f"{path}: expected a number of its own, found {others[0]}"
    headings = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    if headings != HEADINGS:
        yield f"{path}: expected the headings {HEADINGS}, found {headings}"
    if len(lines) > MOST_LINES:
        yield f"{path}: expected at most {MOST_LINES} lines, found {len(lines)}"
    wide = [number for number, line in enumerate(lines, start=1) if len(line) > MOST_COLUMNS]
    if wide:
        yield f"{path}:{wide[0]}: expected at most {MOST_COLUMNS} columns"


def measurement(path: str, text: str) -> Iterator[str]:
    """What a page of measurements leaves open."""
    facts = {
        "a date": r"\b\d{4}-\d\d-\d\d\b",
        "the machine": r"\bmachine",
        "the command": r"\bcommand|`make |`python -m ",
        "a link to its decision": r"\]\(\.\./decisions/",
    }
    for fact, pattern in facts.items():
        if not re.search(pattern, text, re.IGNORECASE):
            yield f"{path}: expected {fact}"


def anchors(text: str) -> set[str]:
    """The names by which links reach the headings of a Markdown text, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {name.strip().replace(" ", "-") for name in kept}


def links(path: str, text: str) -> Iterator[str]:
    """Links of a Markdown file that lead nowhere."""
    for target in LINK.findall(FENCED.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = Path(path).parent / name if name else Path(path)
        if not file.exists():
            yield f"{path}: expected a file, found the link {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield f"{path}: expected a heading, found the link {target}"


def violations(path: str, text: str) -> list[str]:
    """One diagnostic per rule that `path`, a file with content `text`, breaks."""
    is_document = path.endswith(".md")
    names = (FILE if is_document else DOCUMENT).findall(text)
    found = [
        f"{path}: expected a file, found the path {name}"
        for name in names
        if not Path(name).exists()
    ]
    if is_document:
        found += links(path, text)
    if path.startswith("docs/decisions/"):
        found += decision(path, text)
    if path.startswith("docs/measurements/"):
        found += measurement(path, text)
    return found


if __name__ == "__main__":
    sys.exit(check(__doc__, violations, PATTERNS))
