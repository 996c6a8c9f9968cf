# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs compute what PyTorch computes: some hundred in `make test`, as many as fit into
`--random-programs=SECONDS` otherwise."""

from __future__ import annotations

import time
from collections import Counter

import hypothesis
import pytest
import torch
from hypothesis import strategies
from random_judge import differences
from random_programs import random_program

import weft

MOST_LINES = 12
# Fewer would say that the programs test PyTorch.
LEAST_SHARE_COMPILED = 0.7
FEW = 240  # programs
# Reasons why calls run eagerly that no program should give.
FAULTS = ("does not reproduce", "cannot be compared", "compilation failed", "state cannot be read")


class Hypothesis:
    """Draws of hypothesis, which makes a failing program smaller."""

    def __init__(self, data):
        self._data = data

    def integer(self, least: int, most: int) -> int:
        return self._data.draw(strategies.integers(least, most))

    def choice(self, options):
        return options[self.integer(0, len(options) - 1)]


def run(program) -> str | None:
    """Compiled and called twice: compared with PyTorch, then by itself. Why it ran eagerly, None
    if it did not."""
    compiled = weft.compile(program.function())
    for _ in range(2):
        arguments = program.make_arguments()
        with torch.no_grad():
            found = compiled(*arguments)
        wrong = differences(program, found, arguments)
        reason = next(iter(weft.stats(compiled)["breaks"]), None)
        if reason is not None and any(each in reason for each in FAULTS):
            wrong.append(reason)
        assert not wrong, "\n".join([program.source, *map(repr, program.arguments), *wrong])
    return reason


@pytest.mark.usefixtures("verified")
@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
def test_random_programs(request):
    seconds = request.config.getoption("--random-programs")
    reasons: Counter[str | None] = Counter()

    @hypothesis.given(strategies.data())
    def check(data):
        reasons[run(random_program(Hypothesis(data), MOST_LINES))] += 1

    settings = hypothesis.settings(
        max_examples=FEW,
        deadline=None,
        database=None,
        derandomize=not seconds,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    check, end = settings(check), time.monotonic() + seconds
    while True:
        check()
        if time.monotonic() >= end:
            break
    count = reasons.total()
    print(f"{count} programs, {reasons[None]} compiled")
    for reason, times in reasons.most_common(12):
        print(f"{times:6} {reason}")
    assert reasons[None] >= LEAST_SHARE_COMPILED * count, reasons.most_common(5)
