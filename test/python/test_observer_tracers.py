# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing, beside tracers and profile functions of the user's."""

import sys

import pytest
import torch
from observing import compiled, is_whole

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def test_another_tracer_is_left_alone():
    seen = []

    def tracer(frame, event, argument):
        seen.append(event)
        return tracer

    fast = compiled(lambda x: x * 2)
    sys.settrace(tracer)
    try:
        fast(torch.ones(3))
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(None)
    assert "call" in seen
    assert any("tracer" in each for each in weft.stats(fast)["breaks"])


def test_no_tracer_is_left_behind():
    fast, lines = compiled(lambda x: [x * each for each in (1, 2)]), []
    fast(torch.ones(3))
    assert sys.gettrace() is None

    def tracer(frame, event, argument):
        lines.append((frame.f_code.co_name, event))
        return tracer

    def plain():
        return 1 + 1

    sys.settrace(tracer)
    plain()
    sys.settrace(None)
    assert ("plain", "line") in lines and ("plain", "opcode") not in lines


def test_a_tracer_set_within_the_call_stays():
    def f(x):
        sys.settrace(lambda *_: None)
        return x * 2

    fast = compiled(f)
    fast(torch.ones(3))
    installed, _ = sys.gettrace(), sys.settrace(None)
    assert installed is not None
    assert weft.stats(fast)["graphs"] == 0


def test_a_profile_function_is_no_tracer():
    fast = compiled(lambda x: x * 2)
    sys.setprofile(lambda *_: None)
    try:
        fast(torch.ones(3))
    finally:
        sys.setprofile(None)
    assert is_whole(fast)
