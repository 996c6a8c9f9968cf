# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A fixed tenth of the ops of PyTorch's op_db by its own samples; `make opinfo` takes all."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from opinfo.__main__ import shared
from opinfo.entry import Verdict
from opinfo.samples import DTYPES, Choice, entries
from opinfo.workers import judge_all

SHARE = 0.1
KINDS = ["call", "inplace", "out", "errors"]
CHOICE = Choice(seed=42, most=4)
SLICES = 2


@pytest.mark.parametrize("part", range(SLICES))
def test_a_tenth_of_all_ops_is_right(part):
    chosen = shared(entries(list(DTYPES), KINDS), SHARE, CHOICE.seed)[part::SLICES]
    wrong = [
        f"{task.entry}, sample {each.label}: {each.why}"
        for task in judge_all(chosen, CHOICE, jobs=1, timeout=300)
        for each in task.judged
        if each.verdict in (Verdict.WRONG, Verdict.CRASH)
    ]
    assert not wrong, "\n".join(wrong)
