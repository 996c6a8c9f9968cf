# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""As test_guard_pages, for programs that are no plain calls: training's halves, programs for ranges
of sizes, and kernels of tensor expressions under random schedules."""

from __future__ import annotations

import itertools

import pytest
import torch
from guard_cases import KINDS
from guard_programs import alike, at_call, backward_of, halves_of, kernel_of, ranged, trains
from guard_sizes import is_whole, parametrize
from guarded import Program, run
from guarded_memory import SIDES
from hypothesis import HealthCheck, given, settings
from te_strategies import arrays_for, scheduled_programs

import weft
from weft import te

CALLS_OF_A_PROGRAM = 30
KINDS_RUN = [kind for kind in KINDS if kind != "conversions"]  # to each type: of plain calls alone
RANGED = 33  # the most elements of a dim in programs for ranges
FEW_RANGED = 5  # of the calls of a kind
THREADS = (1, 2)


def pytest_generate_tests(metafunc):
    if "sizes" in metafunc.fixturenames:
        parametrize(metafunc, KINDS_RUN)


def runs_alike(program: Program) -> list[torch.Tensor]:
    """The results of calls on both sides of inaccessible pages, by one and two threads, which are
    the same bits."""
    first = None
    for side, threads in itertools.product(SIDES, THREADS):
        results = run(program, side, threads)
        first = first or results
        for label, one, other in zip(program.labels, first, results):
            assert torch.equal(one, other) or other.isnan().any(), f"{label}: {side}, {threads}"
    assert first is not None
    return first


@pytest.mark.sampled(5)
@pytest.mark.parametrize("isa", ["native", "avx2"])
def test_halves_of_training_touch_their_buffers_alone(kind, sizes, isa):
    calls = filter(trains, KINDS[kind](sizes))
    while part := list(itertools.islice(calls, CALLS_OF_A_PROGRAM)):
        for graph, forward, backward in halves_of(part, isa):
            runs_alike(backward_of(graph, backward, runs_alike(forward)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS_RUN)
def test_programs_for_ranges_touch_their_buffers_alone(kind, request, monkeypatch):
    """Compiled once for all sizes, and run at each. What they compute is other tests' question."""
    monkeypatch.setattr(weft.config, "verify", "off")
    whole = is_whole(request.config)
    largest, *smaller = (
        list(KINDS[kind]([size])) for size in (range(RANGED, 1, -1) if whole else (RANGED, 21, 9))
    )
    ran = 0
    for one in largest if whole else largest[:: max(1, len(largest) // FEW_RANGED)]:
        if isinstance(one.function, torch.nn.Module):
            continue
        calls = [one, *(other for others in smaller for other in alike(one, others))]
        for program, call in itertools.product(ranged(calls), calls):
            if (padded := at_call(program, call)) is not None:
                run(padded, "end", threads=2)
                run(padded, "begin", threads=1)
                ran += 1
    assert ran


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(scheduled_programs())
def test_kernels_of_expressions_touch_their_buffers_alone(program):
    inputs, output, schedule = program
    function = te.build(schedule, [*inputs, output], default=False)
    arrays = arrays_for(inputs, len(schedule.steps))
    runs_alike(kernel_of(function, [torch.from_numpy(arrays[each]) for each in inputs]))
