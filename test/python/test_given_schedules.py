# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules that are not chosen, as they do not pay, are honoured with the same results."""

import re

import pytest
import torch
from processor import HAS_PAIRS

from weft import ir

SKINNY = (
    "skinny_matmul {block = 8 : i64, chunk = 64 : i64, claim = 1 : i64, columns = 4 : i64, "
    "lanes = 8 : i64, prefetch = 0 : i64, rows = 4 : i64, segment = 2 : i64}"
)


def scheduled(function, inputs, old: str, new: str, isa: str) -> torch.Tensor:
    """What `function` computes where `old`, a pattern, is `new` in the text of its schedule."""
    text, count = re.subn(old, new, str(ir.of(function, *inputs).lower("scheduled", isa=isa)))
    assert count == 1, text
    return ir.run(ir.Module.parse(text, stage="scheduled"), "scheduled", *inputs, isa=isa)


def test_a_skinny_matmul_of_few_rows_and_columns():
    x, w = torch.randn(3, 64), torch.randn(8, 64)
    found = scheduled(
        torch.nn.functional.linear, (x, w), r"row_dot(?: serial)? \{[^}]*\}", SKINNY, "avx2"
    )
    torch.testing.assert_close(found, x @ w.t())


@pytest.mark.skipif(not HAS_PAIRS, reason="no dot products of bfloat16 pairs")
def test_pairs_of_few_rows():
    x, w = torch.randn(2, 70).bfloat16(), torch.randn(70, 64).bfloat16()
    whole = r"narrow_lanes = 16\1paired = 1"  # pairs have no tiles of fewer lanes
    found = scheduled(torch.matmul, (x, w), r"narrow_lanes = 8(.*)paired = 0", whole, "native")
    torch.testing.assert_close(found, x @ w)
