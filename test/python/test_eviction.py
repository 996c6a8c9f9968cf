# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What becomes of programs where there are more kinds of calls than programs are kept."""

import gc
import os
import random

import pytest
import torch
from threads import in_threads

import weft
from weft.compiled.eviction import Admission

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def four(monkeypatch):
    monkeypatch.setattr("weft.compiled.programs.MOST_SPECIALIZATIONS", 4)


def mapped():
    """Artifacts that the process has loaded."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        return {line.split()[-1] for line in maps if os.environ["WEFT_CACHE_DIR"] in line}


def test_a_size_past_the_limit_is_as_the_second(four, compiled_only):
    compiled = weft.compile(lambda x: x.exp() * 2)
    for rows in range(1, 8):
        x = torch.randn(rows)
        torch.testing.assert_close(compiled(x), x.exp() * 2)
        before = compiled.stats()["hits"]
        compiled(x)
        assert compiled.stats()["hits"] == before + 1
    assert compiled.stats()["captures"] == 7 and compiled.stats()["breaks"] == []
    assert len(compiled.artifact_paths) == 4


def test_the_least_recently_used_goes(four, compiled_only):
    compiled = weft.compile(lambda x: x.sin())
    for rows in (1, 2, 3, 4):
        compiled(torch.randn(rows))
    for rows in (1, 3, 4):  # the second is the oldest now
        compiled(torch.randn(rows))
    compiled(torch.randn(5))
    captures = compiled.stats()["captures"]
    for rows in (1, 3, 4, 5):
        compiled(torch.randn(rows))
    assert compiled.stats()["captures"] == captures
    compiled(torch.randn(2))
    assert compiled.stats()["captures"] == captures + 1


def test_what_comes_back_comes_from_the_cache(four):
    compiled = weft.compile(lambda x: x.cos() + 3)
    paths = set()
    for _ in range(2):
        for rows in range(1, 7):
            compiled(torch.randn(rows))
            paths.update(compiled.artifact_paths)
    assert len(paths) == 6 and compiled.stats()["captures"] == 12


@pytest.mark.at_length
def test_programs_that_are_let_go_of_are_unloaded(four):
    compiled = weft.compile(lambda x: x.tan() + 5)
    for rows in range(1, 12):
        compiled(torch.randn(rows))
    gc.collect()
    before = mapped()
    assert len(compiled.artifact_paths) == 4
    assert {str(path) for path in compiled.artifact_paths} <= before
    for rows in range(12, 20):
        compiled(torch.randn(rows))
    gc.collect()
    assert len(mapped()) == len(before)


def test_threads_with_random_lengths(four):
    compiled = weft.compile(lambda x: x.exp() - 2)

    def work(number):
        lengths = random.Random(number)
        for _ in range(3):
            x = torch.randn(lengths.randint(0, 6))
            torch.testing.assert_close(compiled(x), x.exp() - 2)

    in_threads(16, work)
    assert len(compiled.artifact_paths) <= 4 and compiled.stats()["breaks"] == []


def test_sizes_that_come_back_are_admitted():
    admission, hits = Admission(), 0
    for _ in range(1000):
        hits += 4
        assert admission.admits(hits)


def test_a_size_that_grows_does_not_compile_for_ever():
    admission = Admission()
    admitted = sum(admission.admits(0) for _ in range(100_000))
    assert 32 * 5 <= admitted < 1000


def test_reuse_is_noticed_again():
    admission, hits = Admission(), 0
    for _ in range(20_000):
        admission.admits(hits)
    for _ in range(2 * 32 * 256):
        hits += 10
        admission.admits(hits)
    assert all(admission.admits(hits + 10 * number) for number in range(50))
