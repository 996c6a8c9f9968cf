# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs compiled beside the calls, which wait for none of it."""

import copy
import gc
import os
import random
import signal
import threading
import time
import warnings
import weakref

import pytest
import torch
from processes import python
from threads import in_threads

import weft
from weft.capture import isolated
from weft.errors import NotCompiledError, WeftWarning

pytestmark = pytest.mark.usefixtures("no_grad")

nn = torch.nn
PRELUDE = """
import os, signal, sys, threading, time, torch, weft
torch.set_grad_enabled(False)
weft.config.verify = "first"
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16))
compiled = weft.compile(model, background=True)
"""


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8)).eval()


def succeeds(code, **environment):
    done = python(PRELUDE + code, **environment)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "terminate" not in done.stderr, done.stderr
    return done.stdout.strip()


@pytest.fixture
def held(monkeypatch):
    """Children that compile wait until the pipe is closed."""
    reader, writer = os.pipe()
    opened = [writer]
    run, patience = isolated._run_child, isolated._SECONDS_WITHOUT_PROGRESS

    def run_later(function, known, to):
        for each in opened:  # unless they have been released
            os.close(each)
        while os.read(reader, 1):
            pass
        run(function, known, to)

    monkeypatch.setattr(isolated, "_run_child", run_later)
    monkeypatch.setattr(isolated, "_SECONDS_WITHOUT_PROGRESS", 600.0)

    def release():
        # From now on a child that sleeps waits for a lock that it has found taken.
        monkeypatch.setattr(isolated, "_SECONDS_WITHOUT_PROGRESS", patience)
        while opened:
            os.close(opened.pop())

    yield release
    release()
    os.close(reader)


def test_pytorch_answers_until_the_program_does(verified, held):
    model, x = network(), torch.randn(3, 8)
    compiled = weft.compile(model, background=True)
    for _ in range(3):
        assert torch.equal(compiled(x), model(x))
    assert not compiled.wait(0.0)
    stats = compiled.stats()
    assert (stats["graphs"], stats["hits"], stats["misses"], stats["breaks"]) == (0, 0, 3, [])
    held()
    assert compiled.wait()
    torch.testing.assert_close(compiled(x), model(x))
    stats = compiled.stats()
    assert (stats["graphs"], stats["hits"], stats["captures"]) == (1, 1, 1)


def test_what_is_compared_is_the_call_as_it_was(verified, held):
    """By the time at which the program is compared, calls have filled the table."""

    def noted(x, table, place):
        table.index_copy_(0, place, x)
        place.add_(1)
        return table.sum(0)

    def call(function):
        table, place = torch.zeros(4, 8)[:, ::2], torch.zeros(1, dtype=torch.int64)
        for row in torch.arange(16.0).reshape(4, 1, 4):
            given = row.clone()
            yield function(given, table, place)
            given.zero_()

    compiled = weft.compile(noted, background=True)
    expected = [*call(noted)]
    for _ in range(2):
        for one, other in zip(call(compiled), expected, strict=True):
            torch.testing.assert_close(one, other)
        held()
        assert compiled.wait()
    assert compiled.stats()["graphs"] == 1 and compiled.stats()["hits"] == 4


def test_arguments_are_copied_as_they_lie():
    from weft.compiled.argument_copies import _copies

    rows = torch.arange(60.0).reshape(6, 10)
    scale = nn.Parameter(torch.ones(3))
    given = [rows[1:3, ::2], 7, rows[2:], rows[2:], rows.T[:, :1].expand(10, 4), scale]
    given += [rows[:0], torch.ones(2, 3, requires_grad=True), torch.arange(3)[1:]]
    made = _copies(given, {id(scale)})
    given[2].add_(0)
    for one, other in zip(given, made, strict=True):
        if not isinstance(one, torch.Tensor):
            assert one == other
            continue
        assert torch.equal(one, other) and one.stride() == other.stride()
        assert one.requires_grad == other.requires_grad and type(one) is type(other)
    assert made[5] is scale and made[2] is not given[2]
    assert made[3] is not made[2]  # as `given` has two views
    made[2].fill_(-1.0)
    assert made[0][1].eq(-1).all() and made[3].eq(-1).all() and made[0][0].eq(given[0][0]).all()
    assert rows.min() == 0


def test_nothing_is_pending_without_calls():
    assert weft.compile(network(), background=True).wait()
    assert weft.compile(network()).wait()
    assert weft.compile(lambda x: x + 1, background=True).wait(0.0)


def test_a_call_waits_for_no_compilation(verified, held):
    """Programs answer, and other kinds of calls are taken note of, while one is compiled."""
    model = network()
    compiled = weft.compile(model, background=True)
    for rows in range(1, 5):
        x = torch.randn(rows, 8)
        assert torch.equal(compiled(x), model(x))
    held()
    assert compiled.wait()
    for rows in range(1, 5):
        compiled(torch.randn(rows, 8))
    assert compiled.stats()["hits"] == 4 and compiled.stats()["graphs"] == 4


@pytest.mark.parametrize("mode", ["inference", "autocast", "gradients"])
def test_the_mode_of_the_calling_thread_holds(verified, mode):
    modes = {
        "inference": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        "gradients": torch.enable_grad,
    }
    model, x = network(), torch.randn(3, 8)
    compiled = weft.compile(model, background=True)
    with modes[mode]():
        compiled(x)
        assert compiled.wait()
        expected = model(x)
        for _ in range(2):
            result = compiled(x)
        assert result.dtype == expected.dtype and result.requires_grad == expected.requires_grad
        torch.testing.assert_close(result, expected, atol=2e-2, rtol=2e-2)
    assert compiled.stats()["hits"] >= 1 and compiled.stats()["breaks"] == []


def test_what_cannot_be_compiled_is_said_once(verified):
    def function(x):
        print(end="")
        return x + 1

    compiled = weft.compile(function, background=True)
    x = torch.randn(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            compiled(x)
            compiled.wait()
        for _ in range(3):
            assert torch.equal(compiled(x), x + 1)
    assert [each.category for each in caught] == [WeftWarning]
    strict = weft.compile(function, background=True, fullgraph=True)
    strict(x)
    strict.wait()
    strict(x)
    strict.wait()
    with pytest.raises(NotCompiledError):
        strict(x)


def test_a_killed_compiler_is_a_reason(verified, monkeypatch):
    run = isolated._run_child
    parent = os.getpid()

    def die(function, known, writer):
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        run(function, known, writer)

    monkeypatch.setattr(isolated, "_run_child", die)
    compiled, x = weft.compile(lambda x: x.exp() + 1, background=True), torch.randn(3)
    compiled(x)
    assert compiled.wait()
    with pytest.warns(WeftWarning, match="SIGKILL"):
        assert torch.equal(compiled(x), x.exp() + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(compiled(x), x.exp() + 1)


def test_a_program_for_a_state_that_is_gone_is_not_used(verified, held):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        def forward(self, x):
            return x * self.factor

    model, x = Scaled(), torch.ones(3)
    compiled = weft.compile(model, background=True)
    assert compiled(x).tolist() == [2, 2, 2]
    model.factor = 3.0
    held()
    assert compiled.wait()
    for _ in range(3):
        assert compiled(x).tolist() == [3, 3, 3]
        compiled.wait()
    assert compiled.stats()["hits"] >= 1


def test_effects_happen_once_a_call(verified):
    """What is compared beside the calls writes to nothing that the user sees."""

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count += 1
            return x * self.count + torch.rand(3)

    model, x = Counting(), torch.ones(3)
    compiled = weft.compile(model, background=True)
    torch.manual_seed(5)
    found = []
    for _ in range(4):
        found.append(compiled(x))
        compiled.wait()
    torch.manual_seed(5)
    expected = [x * count + torch.rand(3) for count in range(1, 5)]
    assert model.count.item() == 4
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_a_module_that_is_dropped_is_collected(verified, held):
    model = network()
    compiled, alive = weft.compile(model, background=True), weakref.ref(model)
    compiled(torch.randn(2, 8))
    compiled(torch.randn(3, 8))
    del model, compiled
    deadline = time.monotonic() + 60
    while alive() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert alive() is None


@pytest.mark.at_length
def test_threads_with_random_lengths(verified):
    model = network()
    compiled = weft.compile(model, background=True)

    def work(number):
        lengths = random.Random(number)
        for _ in range(40):
            x = torch.randn(lengths.randint(0, 12), 8)
            torch.testing.assert_close(compiled(x), model(x))

    in_threads(16, work)
    assert compiled.wait()
    in_threads(16, work)
    assert compiled.stats()["breaks"] == [] and compiled.stats()["hits"] > 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_the_process_may_end_at_any_time(end):
    done = python(PRELUDE + f"compiled(torch.randn(2, 8)); time.sleep(0.05)\n{end}")
    assert done.returncode == (-9 if "kill" in end else 3), done.stderr
    assert "Traceback" not in done.stderr and "terminate" not in done.stderr, done.stderr


def test_a_forked_child_goes_on_alone():
    code = """
x = torch.randn(2, 8)
compiled(x)
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    compiled(x)
    assert compiled.wait(60) and compiled(x) is not None
    os._exit(0 if compiled.stats()["hits"] == 1 else 5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert compiled.wait(60)
compiled(x)
print(compiled.stats()["hits"])
"""
    assert succeeds(code) == "1"


@pytest.mark.at_length
def test_a_fork_while_another_thread_looks_programs_up():
    code = """
x = torch.randn(2, 8)
from weft.compiled.module import callable_of
programs = callable_of(compiled).face.programs
entered, leave = threading.Event(), threading.Event()
def hold():
    with programs.lock:
        entered.set()
        leave.wait()
thread = threading.Thread(target=hold)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    compiled(x)
    os._exit(0 if compiled.wait(60) else 5)
leave.set()
thread.join()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    succeeds(code)


def test_a_copy_compiles_beside_the_calls_too(verified):
    compiled = copy.deepcopy(weft.compile(network(), background=True))
    x = torch.randn(2, 8)
    compiled(x)
    assert compiled.wait()
    compiled(x)
    assert compiled.stats()["hits"] == 1


def test_the_compiling_thread_ends():
    compiled = weft.compile(lambda x: x * 2, background=True)
    compiled(torch.ones(2))
    compiled.wait()
    for thread in threading.enumerate():
        if thread.name == "weft":
            thread.join(60)
            assert not thread.is_alive()
