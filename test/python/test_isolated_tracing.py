# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nobody sees tracing: neither modules, tables and generators, nor other threads."""

import functools
import os
import random
import threading
import time

import numpy
import pytest
import torch

import weft
from weft.capture.isolated import call_isolated, in_child
from weft.capture.signature import Declined

pytestmark = pytest.mark.usefixtures("no_grad")

nn = torch.nn


def kinds_of(module: nn.Module) -> set[str]:
    tensors = [*module.parameters(), *module.buffers(), *module.state_dict().values()]
    return {type(tensor).__name__ for tensor in tensors}


def test_the_result_comes_back_and_nothing_else():
    seen = []
    marker = object()

    def work():
        seen.append(in_child())
        return seen[:], torch.arange(3), marker

    flags, values, same = call_isolated(work, {id(marker): marker})
    assert flags == [True] and seen == [] and not in_child()
    assert values.tolist() == [0, 1, 2] and same is marker


def test_errors_come_back_with_their_attributes():
    def work():
        raise Declined("no reason", "there.py:3")

    with pytest.raises(Declined) as caught:
        call_isolated(work, {})
    assert (caught.value.reason, caught.value.location) == ("no reason", "there.py:3")


def test_a_child_that_dies_is_a_reason():
    with pytest.raises(Declined, match="SIGSEGV"):
        call_isolated(lambda: os.kill(os.getpid(), 11), {})


def test_a_child_that_waits_for_another_thread_is_given_up(monkeypatch):
    monkeypatch.setattr("weft.capture.isolated._SECONDS_WITHOUT_PROGRESS", 0.2)
    monkeypatch.setattr("weft.capture.isolated._TICK", 0.1)
    lock = threading.Lock()
    with lock, pytest.raises(Declined, match="another thread"):
        call_isolated(lock.acquire, {})
    with lock, pytest.raises(Declined, match="another thread"):
        call_isolated(lambda: call_isolated(lock.acquire, {}), {})


def test_a_child_may_wait_for_its_own(monkeypatch):
    monkeypatch.setattr("weft.capture.isolated._SECONDS_WITHOUT_PROGRESS", 0.2)
    monkeypatch.setattr("weft.capture.isolated._TICK", 0.1)

    def work():
        began = time.process_time()
        while time.process_time() - began < 1:
            pass
        return 7

    assert call_isolated(lambda: call_isolated(work, {}), {}) == 7


def test_a_class_of_a_function_comes_back():
    class Local:
        pass

    assert call_isolated(lambda: Local, {}) is Local


@functools.lru_cache
def positions(n: int) -> torch.Tensor:
    return torch.arange(n, dtype=torch.float32)


TABLE: dict[int, torch.Tensor] = {}


def test_tables_and_caches_keep_real_tensors():
    def look_up(x):
        if x.shape[-1] not in TABLE:
            TABLE[x.shape[-1]] = torch.ones(x.shape[-1])
        return x + positions(x.shape[-1]) + TABLE[x.shape[-1]]

    TABLE.clear()
    positions.cache_clear()
    compiled = weft.compile(look_up)
    for _ in range(3):
        assert compiled(torch.zeros(2, 5))[0].tolist() == [1, 2, 3, 4, 5]
    assert type(positions(5)) is torch.Tensor and type(TABLE[5]) is torch.Tensor


def test_generators_are_where_eager_execution_leaves_them():
    states = random.getstate(), numpy.random.get_state()[1].copy(), torch.get_rng_state()
    compiled = weft.compile(lambda x: x * 2)
    compiled(torch.ones(3))
    assert random.getstate() == states[0]
    assert (numpy.random.get_state()[1] == states[1]).all()
    assert torch.equal(torch.get_rng_state(), states[2])


@pytest.mark.usefixtures("compiled_only")
def test_the_module_is_never_touched():
    class Watching(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.register_buffer("shift", torch.ones(4))

        def forward(self, x):
            return self.inner(x) + self.shift

    model = Watching()
    compiled, found, stop = weft.compile(model), set(), threading.Event()

    def look():
        while not stop.is_set():
            found.update(kinds_of(model))

    thread = threading.Thread(target=look)
    thread.start()
    for n in range(1, 4):
        compiled(torch.ones(n, 4))
    stop.set()
    thread.join()
    assert found <= {"Parameter", "Tensor"}


def test_torch_is_not_patched_while_it_traces():
    functions = torch.compiler.is_compiling, torch.compiler.is_exporting
    codes, seen, stop = [f.__code__ for f in functions], set(), threading.Event()

    def look():
        while not stop.is_set():
            seen.add(tuple(f.__code__ for f in functions))
            seen.add(type(torch.random.default_generator).__name__)
            seen.add(torch.compiler.is_exporting())

    thread = threading.Thread(target=look)
    thread.start()
    weft.compile(lambda x: x.exp() * 2)(torch.ones(3))
    stop.set()
    thread.join()
    assert seen == {tuple(codes), "Generator", False}


def test_a_failing_trace_leaves_nothing_behind(verified):
    notes = []

    def fails(x):
        notes.append(x.shape)
        if x.sum() > 0:
            return x
        raise ValueError("negative")

    compiled = weft.compile(fails)
    assert compiled(torch.ones(2)).sum() == 2
    assert notes == [(2,)]
    with pytest.raises(ValueError, match="negative"):
        compiled(-torch.ones(2))
    assert notes == [(2,), (2,)]
