# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/abilities.md names a test for every number, and the tests exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBERS = [
    *(f"A{number}" for number in (*range(1, 13), *range(14, 27))),
    *(f"B{number}" for number in range(27, 47)),
    *(f"C{number}" for number in range(47, 55)),
    *(f"D{number}" for number in range(55, 73)),
    *(f"E{number}" for number in range(73, 83)),
    *(f"F{number}" for number in range(83, 100)),
    *(f"L{number}" for number in range(1, 13)),
    *(f"N{number}" for number in range(1, 4)),
]


def rows() -> dict[str, list[str]]:
    table = {}
    for line in (ROOT / "docs" / "abilities.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"[A-FLN]\d+", cells[0]):
            table[cells[0]] = re.findall(r"`([^`]+)`", cells[2])
    return table


def test_every_number_is_there():
    assert list(rows()) == NUMBERS


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", NUMBERS)
def test_its_tests_exist(number):
    named = rows()[number]
    assert named
    for each in named:
        file, _, name = each.partition("::")
        path = ROOT / file if "/" in file else Path(__file__).parent / file
        assert path.is_file(), each
        if not name:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        defined = [
            node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        ]
        assert name in defined, each
