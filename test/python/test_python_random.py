# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers drawn outside of tensor operations, seeds set, and other state that is no container."""

import array
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from os import getenv

import numpy
import pytest
import torch
from counting import programs
from processes import python

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


class Sub(random.Random):
    """A user's generator."""


class Own:
    """Generators of the program's own."""

    def __init__(self):
        self.python = random.Random(3)
        self.sub = Sub(3)
        self.numpy = numpy.random.default_rng(3)
        self.bits = numpy.random.PCG64(3)
        self.legacy = numpy.random.RandomState(3)


def fork(x):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return x + torch.rand_like(x)


def seed(x):
    torch.manual_seed(1)
    return x + torch.rand_like(x)


def seed_of_the_generator(x):
    torch.default_generator.manual_seed(0)
    return x + torch.rand_like(x)


DRAWS = {
    "own class": lambda x, own: x * own.sub.random(),
    "initial seed": lambda x, own: x * (torch.initial_seed() % 7),
    "python": lambda x, own: x * random.random(),
    "numpy": lambda x, own: x * numpy.random.rand(),
    "own python": lambda x, own: x * own.python.random(),
    "own numpy": lambda x, own: x * own.numpy.random(),
    "own bits": lambda x, own: x * float(own.bits.random_raw() % 1000),
    "own legacy": lambda x, own: x * own.legacy.rand(),
    "seed": lambda x, own: seed(x),
    "seed and back": lambda x, own: fork(x),
    "seed of the generator": lambda x, own: seed_of_the_generator(x),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_numbers_that_are_no_tensors(kind):
    def run(make):
        own = Own()
        function = make(lambda x: DRAWS[kind](x, own))
        random.seed(0), numpy.random.seed(0), torch.manual_seed(0)
        return torch.stack([function(torch.ones(3)) for _ in range(4)])

    assert torch.equal(run(weft.compile), run(lambda function: function))


def test_generators_that_are_only_there(compiled_only):
    own = Own()

    def function(x):
        return x * 2 if own.python is not None else x

    compiled = weft.compile(function)
    for _ in range(2):
        own.python.random()
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "buffer", [numpy.zeros(1), numpy.zeros(()), bytearray(1), array.array("d", [0.0])]
)
def test_buffers_that_a_call_writes(buffer):
    def function(x):
        place = () if isinstance(buffer, numpy.ndarray) and buffer.ndim == 0 else 0
        buffer[place] = buffer[place] + 1
        return x * float(buffer[place])

    compiled = weft.compile(function)
    found = [compiled(torch.ones(1)).item() for _ in range(3)]
    assert found == [1, 2, 3]


def test_attributes_of_functions():
    def function(x):
        function.calls = getattr(function, "calls", 0) + 1
        return x * function.calls

    compiled = weft.compile(function)
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [1, 2, 3]

    def scaled(x):
        return x * scaled.factor

    scaled.factor = 2
    scaled.unread = iter([1])
    compiled = weft.compile(scaled)
    assert compiled(torch.ones(1)).item() == 2
    scaled.factor = 3
    assert compiled(torch.ones(1)).item() == 3
    assert not compiled.eager_reasons


@pytest.mark.parametrize(
    "read",
    [
        lambda: os.environ["WEFT_TEST_FACTOR"],
        lambda: os.getenv("WEFT_TEST_FACTOR"),
        lambda: getenv("WEFT_TEST_FACTOR"),
    ],
)
def test_environment(compiled_only, monkeypatch, read):
    compiled = weft.compile(lambda x: x * float(read()))
    for factor in (1, 2, 1):
        monkeypatch.setenv("WEFT_TEST_FACTOR", str(factor))
        assert compiled(torch.ones(1)).item() == factor


def test_variables_that_a_call_sets(monkeypatch):
    monkeypatch.setenv("WEFT_TEST_CALLS", "0")

    def function(x):
        os.environ["WEFT_TEST_CALLS"] = str(int(os.environ["WEFT_TEST_CALLS"]) + 1)
        return x * int(os.environ["WEFT_TEST_CALLS"])

    compiled = weft.compile(function)
    for step in range(1, 4):
        assert compiled(torch.ones(1)).item() == step
        assert subprocess.check_output(["printenv", "WEFT_TEST_CALLS"], text=True) == f"{step}\n"


def test_variables_that_are_not_read(compiled_only, monkeypatch):
    compiled = weft.compile(lambda x: x * len(os.getenv("WEFT_TEST_FACTOR", "")))
    for step in range(3):
        monkeypatch.setenv("WEFT_TEST_STEP", str(step))
        assert compiled(torch.ones(1)).item() == 0
    assert programs(compiled) == 1


def test_other_devices_keep_their_seeds(monkeypatch):
    seeds = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    weft.compile(lambda x: x + 1)(torch.ones(1))
    assert not seeds


def test_threads_that_compile():
    functions = [weft.compile(lambda x, n=n: (x * n).relu()) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda function: function(torch.ones(1)).item(), functions))
    assert found == [0, 1, 2, 3]
    assert not any(function.eager_reasons for function in functions)


@pytest.mark.at_length
def test_compiling_and_reporting_draw_nothing():
    """rich, which prints the tables, takes a number as it is imported."""
    code = """
import random, sys, torch, weft
random.seed(0)
before = random.getstate()
compiled = weft.compile(lambda x: x + 1)
for _ in range(3):
    compiled(torch.ones(3))
weft.report(compiled)
assert weft.stats(compiled)["hits"] and "rich" in sys.modules
assert random.getstate() == before
"""
    finished = python(code)
    assert finished.returncode == 0, finished.stderr
