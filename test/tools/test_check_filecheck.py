# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/check-filecheck.py: directives that FileCheck would ignore are named."""

import pytest

GOOD = """\
// RUN: weft-opt %s | FileCheck %s
// RUN: weft-opt %s -canonicalize | FileCheck %s --check-prefixes=FOLD,CHECK
// Checks that a sum is folded. NOT every sum is.
// CHECK-LABEL: func @sum
// CHECK-COUNT-2: weft.add
// CHECK-NEXT{LITERAL}: [[0, 1]]
// FOLD-NOT: weft.add
"""


def test_directives(run_tool):
    checked = run_tool("check-filecheck.py", {"good.mlir": GOOD})
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize(
    "line, expected, found",
    [
        ("// CHECK-NXT: weft.add", "CHECK-NEXT", "CHECK-NXT"),
        ("// CHECK NEXT: weft.add", "CHECK-NEXT", "CHECK NEXT"),
        ("// CHECK_NOT: weft.add", "CHECK-NOT", "CHECK_NOT"),
        ("// CHEKC-LABEL: func @sum", "CHECK-LABEL", "CHEKC-LABEL"),
        ("  // CHCK: weft.add", "CHECK", "CHCK"),
        ("// FOLD-SMAE: weft.add", "FOLD-SAME", "FOLD-SMAE"),
    ],
)
def test_misspelt(run_tool, line, expected, found):
    checked = run_tool("check-filecheck.py", {"bad.mlir": GOOD + line + "\n"})
    assert checked.returncode == 1
    assert checked.stderr == f"bad.mlir:8: expected {expected}: but found {found}\n"


@pytest.mark.parametrize("directive", ["CHECK", "CHECK-NEXT", "FOLD-DAG", "CHECK-COUNT-3"])
def test_colonless(run_tool, directive):
    checked = run_tool("check-filecheck.py", {"bad.mlir": f"{GOOD}// {directive} weft.add\n"})
    assert checked.returncode == 1
    assert checked.stderr == f"bad.mlir:8: expected a colon after {directive}\n"
