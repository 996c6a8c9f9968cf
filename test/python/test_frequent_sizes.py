# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of a range that come often enough for a program of their own."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

import weft
from weft.compiled import frequent_sizes


@pytest.fixture(autouse=True)
def expected(monkeypatch, automatic_sizes):
    """By which factor the program for a range is slower, whatever it is."""
    gains = {"expected": 2.0, "measured": 2.0}
    monkeypatch.setattr(weft.config, "verify", "off")
    monkeypatch.setattr(frequent_sizes, "_expected_gain", lambda *_: gains["expected"])
    monkeypatch.setattr(frequent_sizes, "_least_seconds", lambda *_: [1.0, gains["measured"]])
    return gains


def windows(x):
    return F.conv1d(x[None], torch.linspace(-1, 1, 3 * 3 * 4).reshape(4, 3, 3), padding=1).relu()


def call(compiled, size, times=1):
    for _ in range(times):
        x = torch.randn(3, size)
        torch.testing.assert_close(compiled(x), windows(x), rtol=1e-5, atol=1e-5)


def answered(compiled):
    """By the program for a range, and how many programs there are."""
    stats = compiled.stats()
    assert stats["breaks"] == []
    return sum(stats["ranges"].values()), stats["graphs"]


def ranged(**settings):
    """Of which one call has made a program for 17 to 32."""
    compiled = weft.compile(windows, shapes={"x": {1: weft.Range(17, 32)}}, **settings)
    call(compiled, 20)
    assert compiled.wait(600)
    call(compiled, 20)
    return compiled, answered(compiled)[0]


@pytest.mark.parametrize("verify", ["off", "first"])
@pytest.mark.parametrize("background", [False, True])
def test_a_size_that_comes_often_has_a_program(background, verify, monkeypatch):
    monkeypatch.setattr(weft.config, "verify", verify)
    compiled, before = ranged(background=background)
    call(compiled, 25, 8)
    assert compiled.wait(600)
    assert answered(compiled) == (before + 8, 2)
    call(compiled, 25, 5)
    call(compiled, 26, 2)
    assert answered(compiled) == (before + 10, 2)


def test_sizes_that_come_seldom_have_none():
    compiled = weft.compile(windows, shapes={"x": {1: weft.Range(33, 64)}})
    for size in [*range(33, 65)] * 9:
        call(compiled, size)
    stats = compiled.stats()
    assert stats["graphs"] == 1 and list(stats["ranges"].values()) == [32 * 9]


def test_what_gains_nothing_is_not_made(expected):
    expected["expected"] = 1.05
    compiled, before = ranged()
    call(compiled, 25, 20)
    assert answered(compiled) == (before + 20, 1) and compiled.stats()["captures"] == 1


def test_what_has_gained_nothing_is_not_kept_and_not_tried_for_ever(expected):
    expected["measured"] = 1.02
    compiled, before = ranged()
    for size in (25, 26, 27, 28):
        call(compiled, size, 9)
    assert answered(compiled) == (before + 36, 1)
    assert compiled.stats()["captures"] == 3


def test_the_number_of_programs_is_bounded(monkeypatch):
    """The one that was called longest ago goes, if that is long ago."""
    monkeypatch.setattr(frequent_sizes, "MOST_PROGRAMS", 2)
    monkeypatch.setattr(frequent_sizes, "_LONG_AGO", 20)
    compiled, before = ranged()
    for size in (25, 26, 27):
        call(compiled, size, 8)
    assert answered(compiled) == (before + 24, 3)
    call(compiled, 26, 30)
    call(compiled, 27, 8)  # the 16th
    call(compiled, 27, 4)
    assert answered(compiled) == (before + 32, 4)
    call(compiled, 25, 4)
    assert answered(compiled) == (before + 36, 4)


def test_what_fails_leaves_the_call_its_value(monkeypatch):
    def failing(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(frequent_sizes, "_expected_gain", failing)
    compiled, before = ranged()
    call(compiled, 25, 20)
    assert answered(compiled) == (before + 20, 1)
    (reason,) = compiled.stats()["specialized"]
    assert "ZeroDivisionError: a bug" in reason


@pytest.mark.parametrize("settings", [{"automatic": False}, {"batch_invariant": True}], ids=str)
def test_those_who_want_one_program_have_one(settings):
    def rows(x):
        return x.exp()

    compiled = weft.compile(rows, shapes={"x": {0: weft.Range(2, 64)}}, **settings)
    for _ in range(12):
        compiled(torch.randn(25, 3))
    assert compiled.stats()["graphs"] == 1


def test_what_is_written_is_written_once():
    """No call is made again that changes an argument."""

    def counted(x):
        return x.add_(1.0)

    compiled = weft.compile(counted, shapes={"x": {0: weft.Range(2, 64)}})
    x = torch.zeros(25, 3)
    for _ in range(20):
        compiled(x)
    assert torch.equal(x, torch.full((25, 3), 20.0))


def test_what_is_expected(monkeypatch):
    """The time of the largest sizes goes down with the sizes, except for reading weights."""
    monkeypatch.undo()
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(windows, shapes={"x": {1: weft.Range(17, 32)}})
    call(compiled, 20, 2)
    (program,) = compiled.face.programs.range_programs()
    args = (torch.randn(3, 24),)

    def expected_of(here, largest):
        def timed(*calls):
            assert all(ran for ran, _ in (each() for each in calls))
            return [here, largest]

        monkeypatch.setattr(frequent_sizes, "_least_seconds", timed)
        return frequent_sizes._expected_gain(program, args, {})

    assert math.isclose(expected_of(1.0, 1.0), 32 / 24)
    assert math.isclose(expected_of(0.75, 1.0), 1.0) or expected_of(0.75, 1.0) == 0.0
    assert expected_of(4e-5, 4e-5) == 0.0
    monkeypatch.setattr(frequent_sizes, "_weight_bytes", lambda _: 10**12)
    assert expected_of(1.0, 1.0) == 0.0
