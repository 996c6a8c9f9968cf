# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No argument of any op kills the process, at compile time or in generated code: random calls of
every overload of the frontend's table, in processes that may die.

`--rule-cases=N` takes N calls of each overload instead of one, each also with other types.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import weft.frontend.ops  # noqa: F401 (fills the table)
from weft.frontend.table import TABLE

SLICES = 2
PROGRAM = Path(__file__).with_name("rule_cases.py")
MOST_SEEDS = 20
TIMEOUT = 120  # seconds for one overload's cases


def problems(targets: list[str], count: int) -> list[str]:
    """A process that dies is started anew behind the overload that killed it; where it was
    PyTorch that died, with other draws of that overload."""
    found, seed = [], 0
    while targets:
        done = subprocess.run(
            [sys.executable, PROGRAM, str(seed), str(count), *targets],
            capture_output=True,
            text=True,
            timeout=TIMEOUT * len(targets),
        )
        lines = done.stdout.splitlines()
        found += [line for line in lines if line.startswith("problem ")]
        targets = targets[sum(line.startswith("end ") for line in lines) :]
        if done.returncode == 0:
            break
        if lines and lines[-1].startswith("try ") and seed < MOST_SEEDS:
            seed += 1
            continue
        found.append(f"exit {done.returncode} at {lines[-1:]}: {done.stderr[-300:]}")
        targets = targets[1:]
    return found


@pytest.mark.parametrize("part", range(SLICES))
def test_no_call_kills_the_process(part, request):
    count = request.config.getoption("--rule-cases")
    targets = sorted(TABLE)[part::SLICES]
    assert len(targets) > 200
    found = problems(targets, count)
    assert not found, "\n".join(found)
