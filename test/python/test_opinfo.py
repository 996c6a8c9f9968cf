# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A fixed tenth of the ops of PyTorch's op_db by its own samples; `make opinfo` takes all."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from opinfo.__main__ import shared
from opinfo.entry import Verdict
from opinfo.gradients import differentiable_entries, judge_gradients
from opinfo.samples import DTYPES, Choice, calls_of, entries
from opinfo.workers import judge_all

import weft

SHARE = 0.1
KINDS = ["call", "inplace", "out", "errors"]
CHOICE = Choice(seed=42, most=3)
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


@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
def test_gradients_of_a_few_ops_are_right(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "first")
    chosen = shared(differentiable_entries(["f64", "f32"]), 0.01, CHOICE.seed)
    found = {
        f"{entry} {call.label}": judge_gradients(call)
        for entry in chosen
        for call in calls_of(entry, Choice(CHOICE.seed, most=1))
    }
    wrong = {name: why for name, (verdict, why) in found.items() if verdict is Verdict.WRONG}
    assert not wrong
    passed = [name for name, (verdict, _) in found.items() if verdict is Verdict.PASS]
    assert len(passed) > len(found) / 3, found
