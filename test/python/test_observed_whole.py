# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fullgraph=True`: a call that no program will stand for is broken off before it does anything."""

import os

import pytest
import torch

import weft
from weft import errors


def whole(function, **settings):
    return weft.compile(function, fullgraph=True, **settings)


SETTINGS = [{"capture": "observe", "backend": "eager"}, {"capture": "observe"}, {}]


@pytest.mark.parametrize("settings", SETTINGS, ids=["eager", "native", "default"])
def test_nothing_has_been_done_yet(settings):
    seen = []

    def step(x):
        y = torch.nn.functional.dropout(x, 0.5)
        if y.sum() >= 0:  # which is not traced
            os.getpid()
        seen.append(y)
        return y

    fast, state = whole(step, **settings), torch.get_rng_state()
    for _ in range(6):
        with pytest.raises(errors.NotCompiledError) as raised:
            fast(torch.ones(3))
        assert raised.value.__context__ is None or isinstance(
            raised.value.__context__, errors.Error
        )
    assert seen == [] and torch.equal(torch.get_rng_state(), state)


def test_the_reason_and_the_line_are_told():
    def step(x):
        return x * os.getpid()

    fast = whole(step, capture="observe", backend="eager")
    line = step.__code__.co_firstlineno + 1
    with pytest.raises(
        errors.NotCompiledError, match=rf"getpid.*{os.path.basename(__file__)}:{line}"
    ):
        fast(torch.ones(3))


def test_what_has_been_done_is_done_once():
    seen = []

    def step(x):
        seen.append(1)
        return x * os.getpid()

    fast = whole(step, capture="observe", backend="eager")
    with pytest.raises(errors.NotCompiledError):
        fast(torch.ones(3))
    assert seen == [1]


def test_modes_and_blocks_are_left():
    left = []

    class Block:
        def __enter__(self):
            return self

        def __exit__(self, *raised):
            left.append(raised[0])

    def step(x):
        torch.set_grad_enabled(False)
        try:
            with Block():
                return x * os.getpid()
        except Exception:
            left.append("caught")
            raise

    fast = whole(step, capture="observe", backend="eager")
    with pytest.raises(errors.NotCompiledError):
        fast(torch.ones(3))
    assert torch.is_grad_enabled() and len(left) == 1 and not issubclass(left[0], Exception)


def test_arguments_that_are_not_observed():
    seen = []

    def step(x):
        seen.append(1)
        return x

    fast = whole(step, capture="observe", backend="eager")
    with pytest.raises(errors.NotCompiledError, match="args"):
        fast(torch.ones(3).to_sparse())
    assert seen == []
