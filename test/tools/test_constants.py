# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/constants.md lists the numbers by which compiler/Scheduling and compiler/Transforms choose,
and those of compiler/Target/CostModel.cpp: each of them, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FILES = ("Scheduling/*.[ch]*", "Transforms/*.[ch]*", "Target/CostModel.cpp")
_DEFINED = re.compile(r"constexpr (?:int64_t|double|unsigned|int|size_t) ([^;(]+);")
_NAME = re.compile(r"(?:^|, )(\w+) = (?!-1\b)")  # -1: none


def defined() -> set[tuple[str, str]]:
    """File and name of each constant."""
    return {
        (file.name, name)
        for files in _FILES
        for file in (ROOT / "compiler").glob(files)
        for text in _DEFINED.findall(file.read_text())
        for name in _NAME.findall(text)
    }


def listed() -> dict[tuple[str, str], list[str]]:
    """File and name, with the other cells of the row. A row without a file is of the one above."""
    rows, file = {}, ""
    for line in (ROOT / "docs/constants.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| ") or len(cells) != 5 or cells[0] in ("file", "---"):
            continue
        file = cells[0].strip("`") or file
        for name in re.findall(r"`(\w+)`", cells[1]):
            rows[file, name] = cells[2:]
    return rows


def test_each_number_is_listed():
    assert defined() - listed().keys() == set()


def test_no_number_is_listed_that_is_gone():
    assert listed().keys() - defined() == set()


def test_each_number_has_a_unit_and_a_source():
    for name, (value, unit, source) in listed().items():
        assert value and unit and source, name
        again = ("python -m benchmarks", "test/python/", "measure_", "no measurement", "every x86")
        assert any(each in source for each in again) or "differ by" in source, name
