# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls after the first: memory, idle processors, forks, threads, number of threads."""

import os
import resource
import threading
import time

import pytest
import torch
from threads import in_threads

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

nn = torch.nn


@pytest.fixture
def two_threads(own_threads):
    weft.set_num_threads(2)


def wide_net():
    """Large enough for a team to share every kernel."""
    layers = [nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 256)]
    return nn.Sequential(*layers, nn.Softmax(-1))


def resident_bytes() -> int:
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * resource.getpagesize()


def growth(call, times: int) -> int:
    """The least of three: the allocators' pools grow once, whoever calls."""
    found = []
    for _ in range(3):
        before = resident_bytes()
        for _ in range(times):
            call()
        found.append(resident_bytes() - before)
    return min(found)


def test_memory_stays_the_same():
    compiled = weft.compile(lambda x, pair: {"y": x + 1, "z": (pair[0] * x, pair)})
    x = torch.ones(16)
    assert growth(lambda: compiled(x, (x, 3)), 10_000) < 64 * 1024


def test_memory_stays_the_same_with_prepared_weights():
    model = nn.Conv2d(3, 8, 3).eval()
    compiled = weft.compile(model)
    x = torch.randn(1, 3, 8, 8)

    def call() -> None:
        model.weight.add_(0.01)
        compiled(x)

    assert growth(call, 1000) < 64 * 1024


def test_idle_workers_sleep(two_threads):
    model = wide_net()
    compiled = weft.compile(model)
    x = torch.randn(64, 256)
    torch.testing.assert_close(compiled(x), model(x))
    deadline = time.monotonic() + 5
    # PyTorch's own workers, from the eager call, spin for a while; not ours to count.
    torch.set_num_threads(torch.get_num_threads())
    while time.monotonic() < deadline:
        compiled(x)
        before = time.process_time()
        threading.Event().wait(1.0)
        used = time.process_time() - before
        if used <= 0.005:
            break
    assert used <= 0.005


def test_same_bits_with_one_and_two_threads(two_threads):
    model = wide_net()
    compiled = weft.compile(model)
    x = torch.randn(96, 256)
    two = compiled(x)
    weft.set_num_threads(1)
    one = compiled(x)
    assert torch.equal(one, two)
    torch.testing.assert_close(one, model(x))


def test_forked_child(two_threads):
    model = wide_net()
    compiled = weft.compile(model)
    x = torch.randn(64, 256)
    expected = compiled(x)
    child = os.fork()
    if child == 0:
        # No test machinery here: the exit status tells. torch's own kernels may hang in a
        # forked child, so eager results are not asked for.
        status = 1
        try:
            same = all(bool((compiled(x) == expected).all()) for _ in range(3))
            weft.set_num_threads(1)
            status = 0 if same and bool((compiled(x) == expected).all()) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.equal(compiled(x), expected)


def test_several_threads_at_once(two_threads):
    model = wide_net()
    compiled = weft.compile(model)
    inputs = [torch.randn(64, 256) for _ in range(4)]
    expected = [compiled(x) for x in inputs]

    def work(number):
        for _ in range(100):
            assert torch.equal(compiled(inputs[number]), expected[number])

    in_threads(4, work)


def test_several_threads_compile_at_once():
    model = wide_net()
    compiled = weft.compile(model)
    # Beforehand: torch.export replaces the module's parameters while it traces.
    inputs = [torch.randn(8 + number % 2, 256) for number in range(4)]
    expected = [model(x) for x in inputs]
    start = threading.Barrier(4)

    def work(number):
        start.wait()
        torch.testing.assert_close(compiled(inputs[number]), expected[number])

    in_threads(4, work)


def test_other_threads_run_during_a_call(two_threads):
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)])
    compiled = weft.compile(model)
    x = torch.randn(512, 1024)
    compiled(x)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    other = threading.Thread(target=count)
    other.start()
    try:
        progress = []
        for _ in range(20):
            before = counted[0]
            compiled(x)
            progress.append(counted[0] - before)
    finally:
        stop.set()
        other.join()
    # With the GIL held, the counter would stand still from entry to return.
    assert max(progress) > 1000


def test_weights_change_while_others_call(two_threads):
    """Every result is that of some state of the weights, never of a half-prepared one."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 64, 3)).eval()
    nn.init.zeros_(model[2].bias)
    compiled = weft.compile(model)
    x = torch.randn(1, 3, 16, 16)
    base = compiled(x)
    scales = [2.0**power for power in range(6)]
    possible = [base * scale for scale in scales]

    def work(number):
        for step in range(2000):
            if number < 2:
                # One element after another would show; a whole new storage is one step, which
                # frees the one before.
                model[2].weight.data = kept * scales[step % len(scales)]
            else:
                result = compiled(x)
                assert any(torch.equal(result, one) for one in possible)

    kept = model[2].weight.data.clone()
    in_threads(4, work)


def test_loaded_artifact_called_with_several_weights_at_once():
    model = nn.Conv2d(3, 8, 3).eval()
    compiled = weft.compile(model)
    x = torch.randn(1, 3, 16, 16)
    compiled(x)
    loaded = weft.load(compiled.artifact_path)
    weights = [torch.randn_like(model.weight) for _ in range(3)]
    expected = [nn.functional.conv2d(x, weight, model.bias) for weight in weights]

    def work(number):
        for _ in range(100):
            (result,) = loaded(weights[number], model.bias, x)
            torch.testing.assert_close(result, expected[number])

    in_threads(3, work)
