# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Observed calls on several threads: a replay that is compared with a call puts back what the call
has changed, and nothing that another thread does meanwhile may be lost."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from observing import compiled
from threads import in_threads
from torch import nn

import weft
from weft import _capture
from weft.observe.turns import TURNS

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")

THREADS, CALLS = 8, 20


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen, self.names = nn.Linear(4, 4), [], {}

    def forward(self, x, name):
        self.seen.append(name)
        self.names[name] = len(name)
        return self.layer(x) * 2


@pytest.mark.parametrize("wrap", [weft.compile, lambda f: compiled(f, "native")])
def test_concurrent_first_calls_lose_no_effects(wrap):
    model = Keeping()
    fast, inputs = wrap(model), torch.randn(THREADS, CALLS, 2, 4)
    start = threading.Barrier(THREADS)

    def calls(number):
        start.wait()
        for x in inputs[number]:
            torch.testing.assert_close(fast(x, f"{number}"), model.layer(x) * 2)

    in_threads(THREADS, calls)
    names = [f"{number}" for number in range(THREADS)]
    assert sorted(model.seen) == sorted(names * CALLS)
    assert sorted(model.names) == names
    assert not weft.stats(fast)["breaks"]


def test_a_replay_may_call_what_is_compiled():
    """An operator of the user's in Python, which a log holds as one operation."""
    model = Keeping()
    inner = compiled(model)

    @torch.library.custom_op("weft_tests::calls_what_is_compiled", mutates_args=())
    def operator(x: torch.Tensor) -> torch.Tensor:
        return inner(x, "a").detach().clone()

    fast, x = compiled(lambda x: operator(x) + 1), torch.ones(1, 4)
    for _ in range(3):
        inner(x, "a")
    for _ in range(3):
        torch.testing.assert_close(fast(x), model.layer(x).detach() * 2 + 1)


def test_a_call_that_waits_for_calls_of_other_threads():
    inner_model = Keeping()
    inner = compiled(inner_model)

    def outer(x):
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda name: inner(x, name), "ab"))

    fast, x = compiled(outer), torch.ones(1, 4)
    for number in range(3):
        torch.testing.assert_close(fast(x), inner_model.layer(x) * 4)
        assert sorted(inner_model.seen) == sorted("ab" * (number + 1))


def test_calls_wait_for_a_replay_and_a_replay_for_calls():
    began, ends, told = threading.Event(), threading.Event(), []

    def call():
        with TURNS.call():
            began.set()
            ends.wait()
            told.append("call")

    def late_call():
        with TURNS.call():
            told.append("late call")

    first = threading.Thread(target=call)
    first.start()
    began.wait()
    with TURNS.replay() as alone:
        assert not alone  # the call does not end
    ends.set()
    first.join()
    with TURNS.replay() as alone:
        assert alone
        with TURNS.replay() as nested:
            assert nested
        late = threading.Thread(target=late_call)
        late.start()
        late.join(0.05)
        told.append("replay")
    late.join()
    assert told == ["call", "replay", "late call"]


def test_programs_in_cpp_are_not_started_beside_a_replay():
    model, x = Keeping(), torch.ones(1, 4)
    fast = compiled(model)
    for _ in range(3):
        fast(x, "a")
    before, asked = fast.stats()["hits"], []
    with TURNS.replay() as alone:
        assert alone
        thread = threading.Thread(target=lambda: asked.append(fast(x, "a")))
        thread.start()
        thread.join(0.05)
        assert thread.is_alive() and model.seen == ["a"] * 3
    thread.join()
    assert model.seen == ["a"] * 4 and fast.stats()["hits"] == before + 1
    assert _capture.running_programs() == 0


def test_a_child_does_not_wait_for_threads_of_its_parent():
    began, ends = threading.Event(), threading.Event()

    def call():
        with TURNS.call():
            began.set()
            ends.wait()

    thread = threading.Thread(target=call)
    thread.start()
    began.wait()
    child = os.fork()
    if child == 0:
        with TURNS.replay() as alone:
            os._exit(0 if alone else 1)
    ends.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_replay_without_draws_lets_the_generator_alone():
    """Other threads draw from it, too, and would draw the same again."""
    drawn, inputs = [], torch.randn(2, 4)

    def kept(x):
        seen.append(len(seen))
        return x * 2

    seen, restored, real = [], [], torch.set_rng_state
    torch.set_rng_state = lambda state: restored.append(state) or real(state)
    try:
        fast = compiled(kept, "native")
        for _ in range(4):
            fast(inputs)
            drawn.append(torch.rand(1).item())
    finally:
        torch.set_rng_state = real
    assert not restored and len(set(drawn)) == 4 and weft.stats(fast)["hits"] >= 2
