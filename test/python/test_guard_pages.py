# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated code touches its buffers and nothing else: every kind of kernel, with each buffer
once ending at and once beginning behind an inaccessible page, at the sizes of guard_sizes.py."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from guard_cases import KINDS
from guard_sizes import is_whole, parametrize
from guarded import Call, Program, compile_calls, run
from guarded_memory import SIDES
from processor import FLAGS
from random_programs import random_program

from weft.frontend.lowered import Unsupported

CALLS_OF_A_PROGRAM = 60
ISAS = ["native", "avx2"]
TILE_PRODUCT = re.compile(rb"\xc4\xe2[\x42-\x7a]\x5c[\xc0-\xff]", re.DOTALL)  # tdpbf16ps
RANDOM_PROGRAMS = 32
PROGRAMS_TOGETHER = 8


def pytest_generate_tests(metafunc):
    if "sizes" in metafunc.fixturenames:
        parametrize(metafunc, KINDS)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("isa", ISAS)
def test_kernels_touch_their_buffers_alone(kind, sizes, isa):
    check(KINDS[kind](sizes), isa)


@pytest.mark.skipif("amx_bf16" not in FLAGS, reason="the processor has no matrix unit")
@pytest.mark.parametrize("size", [0, 1, 15, 33])
def test_the_matrix_unit_touches_its_buffers_alone(size):
    products = check(KINDS["matrix_units"]([size]), "amx")
    assert products > 100  # most of the kernels are for the unit


def check(calls: Iterator[Call], isa: str) -> int:
    """The number of products of tiles in the code."""
    products = 0
    while part := list(itertools.islice(calls, CALLS_OF_A_PROGRAM)):
        program = compile_calls(part, isa, threads=2)
        products += len(TILE_PRODUCT.findall(Path(program.path).read_bytes()))
        first = None
        for side, threads in itertools.product(SIDES, (1, 2)):
            results = run(program, side, threads)
            first = first or results
            for label, got, same, want in zip(program.labels, results, first, program.expected):
                assert torch.equal(got, same) or got.isnan().any(), f"{label}: {side}, {threads}"
                close = torch.allclose(got.double(), want.double(), 5e-2, 5e-2, equal_nan=True)
                assert close, f"{label}: far from eager's"
    return products


class Random:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def choice(self, options):
        return self._random.choice(options)


@pytest.mark.parametrize("isa", ISAS)
def test_random_programs_touch_their_buffers_alone(isa, request):
    """What they compute is another test's question. Programs that change arguments change copies:
    the harness gives arguments that nobody may write."""
    seeds = RANDOM_PROGRAMS * (50 if is_whole(request.config) else 1)
    for first in range(0, seeds, PROGRAMS_TOGETHER):
        calls = []
        for seed in range(first, first + PROGRAMS_TOGETHER):
            program = random_program(Random(seed), most_lines=12)
            function = program.function()

            def on_copies(*args, function=function):
                return function(*(arg.clone() for arg in args))

            calls.append(Call(program.source, on_copies, program.make_arguments()))
        for compiled in compiled_programs(calls, isa):
            for side, threads in itertools.product(SIDES, (1, 2)):
                run(compiled, side, threads)


def compiled_programs(calls: list[Call], isa: str) -> list[Program]:
    """As one program; where that is left to PyTorch, those that are not, each alone."""
    try:
        together = compile_calls(calls, isa, threads=2, native=False)
    except Unsupported:
        together = None
    if together is not None or len(calls) == 1:
        return [together] if together is not None else []
    return [each for call in calls for each in compiled_programs([call], isa)]
