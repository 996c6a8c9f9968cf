# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of the corpus, changed between calls, give what eager execution gives: a few changes of
each, chosen by seed; `make capture-fuzz` and `--capture-fuzz=SECONDS` go on with others."""

import itertools
import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from capture.corpus import Name, names
from capture.fuzzer import all_mutations
from capture.workers import Plan, judge, judge_all

MOST = 12  # changes of a program
SHARE = 8  # every such program of the corpus
CAPTURES = 0.02
LEAST_SHARE_WHOLE = 0.45
JOBS = 1  # pytest runs files side by side

pytestmark = pytest.mark.usefixtures("verified")


def wrong_of(programs: list[Name], plan: Plan) -> tuple[list[str], int]:
    """What is wrong, and how many programs run whole."""
    judged = list(judge_all(programs, plan, JOBS))
    return [str(wrong) for each in judged for wrong in each.wrong], sum(j.whole for j in judged)


def test_a_part_of_the_corpus_is_right(request):
    seconds = request.config.getoption("--capture-fuzz")
    end = time.monotonic() + seconds
    for seed in itertools.count():
        programs = names() if seconds else names()[::SHARE]
        wrong, whole = wrong_of(programs, Plan(seed=seed, most=MOST, captures=CAPTURES))
        assert not wrong, "\n".join(wrong)
        assert whole >= LEAST_SHARE_WHOLE * len(programs)
        if time.monotonic() >= end:
            break


def test_observed_calls_are_right():
    programs = names()[1 :: 3 * SHARE]
    wrong, whole = wrong_of(programs, Plan(subject="observe", most=6, captures=0.5))
    assert not wrong, "\n".join(wrong)
    assert whole >= LEAST_SHARE_WHOLE * len(programs)


EXAMPLES = [Name("scopes", "closure_scalar"), Name("modules", "attributes"),
            Name("containers", "list_by_length"), Name("effects", "attribute_counted")]  # fmt: skip


def test_eager_execution_is_never_wrong():
    wrong, _ = wrong_of(EXAMPLES[:1], Plan(subject="eager"))
    assert not wrong


@pytest.mark.parametrize("program", EXAMPLES, ids=str)
def test_a_stale_result_is_found(program):
    judged = judge(program, Plan(subject="stale"))
    assert judged.wrong


def test_mutations_have_names_of_their_own():
    for program in EXAMPLES:
        found = [str(each) for each in all_mutations(program)]
        assert len(found) > 40 and len(set(found)) == len(found)


def test_a_death_is_told_of(monkeypatch):
    """Of the process that judges, at a change that eager execution survives."""
    from capture import workers

    class Dies(workers.SUBJECTS["eager"]):
        def compile(self, target):
            calls = itertools.count()
            return lambda *args, **kwargs: os._exit(1) if next(calls) == 4 else target(*args)

    monkeypatch.setitem(workers.SUBJECTS, "dies", Dies)
    judged = judge(EXAMPLES[0], Plan(subject="dies", most=2))
    assert any("died" in str(each) for each in judged.wrong)
