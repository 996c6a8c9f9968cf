# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Observed calls on several threads: a replay, which starts from the state ahead of the call, is
not seen by another thread, and loses nothing that another thread does meanwhile."""

import contextlib
import os
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from observing import beside_eager, compiled
from threads import in_threads
from torch import nn

import weft
from weft.observe import other_threads
from weft.observe.trials import in_child

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


@contextlib.contextmanager
def beside(action):
    """Another thread repeats the action, and yields between two of them. Yields its results."""
    ends, found = threading.Event(), []

    def repeat():
        while not ends.is_set():
            found.append(action())
            time.sleep(0)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield found
    finally:
        ends.set()
        thread.join()


@contextlib.contextmanager
def another_thread():
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


BACKENDS = ("eager", "native", lambda module, inputs: module.forward)


class Streaming(nn.Module):
    """What a call changes: a counter, a buffer, a list, a dict, and the order of a deque."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(()))
        self.calls, self.seen, self.last = 0, [], {}
        self.waiting, self.history = deque(), [torch.zeros(4), torch.ones(4)]

    def forward(self, x):
        self.calls += 1
        self.count += 1
        self.seen.append("call")
        self.last["mean"] = x.mean()
        if self.waiting:
            self.waiting.popleft()
        past = torch.stack(self.history).sum(0)
        self.history[0] = x[0] * 2
        return self.layer(x) + past + self.count

    def state(self):
        return (self.count, self.seen, self.last, list(self.waiting), self.history)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.usefixtures("verified")
def test_programs_are_made_beside_another_thread(backend):
    def make():
        torch.manual_seed(0)
        model = Streaming().eval()
        return model, lambda number: (torch.full((2, 4), 1.0 + number),), model.state

    with another_thread(), torch.no_grad():
        assert other_threads.live()
        fast = beside_eager(make, 8, backend=backend)
    assert not fast.stats()["breaks"] and fast.stats()["hits"] >= 2
    assert not fast.stats()["replayed"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.usefixtures("verified")
def test_training_beside_another_thread(backend):
    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def forward(x):
            seen.append(len(seen))
            return model(x).square().mean()

        seen = []

        def step(x):
            optimizer.zero_grad()
            loss = fast(x)
            loss.backward()
            optimizer.step()
            return loss.detach()

        fast = forward if not made else compiled(forward, backend)
        made.append(fast)
        return step, [*model.state_dict().values()], seen

    made = []
    ours, other = make()[::-1], make()[::-1]
    inputs = torch.randn(5, 6, 4, generator=torch.Generator().manual_seed(1))
    with another_thread():
        for x in inputs:
            torch.testing.assert_close(ours[2](x), other[2](x))
        torch.testing.assert_close(ours[1], other[1])
    assert ours[0] == other[0] == list(range(5))
    stats = made[1].stats()
    assert not stats["breaks"] and not stats["replayed"] and stats["hits"] >= 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_another_thread_appends_outside_of_calls_is_kept(backend):
    model = Streaming()
    fast, x, given = compiled(model, backend), torch.ones(1, 4), []

    def give():
        for _ in range(8):
            given.append(len(given))
            model.waiting.append(given[-1])
            model.seen.append("other")

    calls = 40
    with beside(give):
        for _ in range(calls):
            fast(x)
    assert model.calls == calls and model.count == calls
    assert model.seen.count("call") == calls and model.seen.count("other") == len(given)
    assert list(model.waiting) == given[len(given) - len(model.waiting) :]
    assert len(given) - len(model.waiting) <= calls


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.usefixtures("verified")
def test_nothing_goes_back_that_another_thread_sees(backend):
    model = Streaming()
    fast, x = compiled(model, backend), torch.ones(1, 4)
    with beside(lambda: (model.calls, model.count.item(), len(model.seen))) as seen:
        for _ in range(5):
            fast(x)
            time.sleep(0.01)
    assert model.count == 5
    for values in zip(*seen):
        assert list(values) == sorted(values)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.usefixtures("verified")
def test_numbers_that_another_thread_draws_do_not_repeat(backend):
    seen = []

    def drops(x):
        seen.append(len(seen))
        return nn.functional.dropout(x, 0.5)

    fast, x = compiled(drops, backend), torch.ones(64)
    with beside(lambda: torch.rand(8).numpy().tobytes()) as drawn:
        for _ in range(6):
            fast(x)
            time.sleep(0.01)
    assert len(drawn) > 6 and len(set(drawn)) == len(drawn)
    assert seen == list(range(6))


def test_a_call_of_which_only_others_draw_has_a_program():
    seen = []

    def counts(x):
        seen.append(len(seen))
        return x * 2

    fast, x = compiled(counts), torch.ones(4)
    with beside(lambda: torch.rand(8).numpy().tobytes()) as drawn:
        for _ in range(8):
            fast(x)
            time.sleep(0.01)
    assert len(set(drawn)) == len(drawn) and fast.stats()["hits"] >= 2


def test_what_a_backend_writes_while_it_compiles_is_undone():
    def runs(module, inputs):
        module(*inputs)
        return module.forward

    model = Streaming()
    fast, x = compiled(model, runs), torch.ones(1, 4)
    with another_thread():
        for number in range(4):
            fast(x)
            assert model.count == number + 1


def test_a_repetition_that_waits_for_another_thread_has_a_reason():
    """A child has no other thread that would free what this one holds."""
    lock = threading.Lock()
    with another_thread(), lock, pytest.raises(Exception, match="another thread holds"):
        in_child(lock.acquire)


@pytest.mark.usefixtures("verified")
def test_a_process_that_cannot_fork_says_so(monkeypatch):
    def fork():
        raise OSError("Cannot allocate memory")

    fast, x = compiled(Streaming()), torch.ones(1, 4)
    with another_thread():
        with monkeypatch.context() as patch:
            patch.setattr(os, "fork", fork)
            for _ in range(3):
                fast(x)
        assert any("Cannot allocate memory" in each for each in weft.stats(fast)["breaks"])
        assert fast.calls == fast.count == 3


def test_a_child_has_the_settings_and_threads_of_its_parent():
    def settings():
        return torch.get_num_threads(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")

    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert in_child(settings) == settings() == (torch.get_num_threads(), False, True)
    x = torch.randn(1 << 20)
    assert in_child(lambda: x.sum().item()) == x.sum().item()


def test_a_child_does_not_count_calls_of_its_parents_threads():
    began, ends = threading.Event(), threading.Event()

    def call():
        with other_threads.CALLS.call():
            began.set()
            ends.wait()

    thread = threading.Thread(target=call)
    thread.start()
    began.wait()
    assert other_threads.CALLS.of_others()[1]
    child = os.fork()
    if child == 0:
        os._exit(1 if other_threads.CALLS.of_others()[1] else 0)
    ends.set()
    thread.join()
    assert not other_threads.CALLS.of_others()[1]
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
