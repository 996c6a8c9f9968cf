# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many threads programs run on."""

import os

import pytest
from processes import python

import weft

PRELUDE = "import threading, torch, weft\n"
CASES = {
    "as many as torch": ("torch.set_num_threads(3)", "3"),
    "as many as torch, whose number changes": (
        "torch.set_num_threads(3); weft.get_num_threads(); torch.set_num_threads(1)",
        "1",
    ),
    "in another thread": (
        "torch.set_num_threads(1); found = []\n"
        "thread = threading.Thread(target=lambda: found.append(weft.get_num_threads()))\n"
        "thread.start(); thread.join(); assert found == [1], found",
        "1",
    ),
    "as the user says": ("weft.set_num_threads(2); torch.set_num_threads(1)", "2"),
}


def output(code: str, **environment: str) -> str:
    done = python(PRELUDE + code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_number_beside_torch(name):
    code, expected = CASES[name]
    assert output(f"{code}\nprint(weft.get_num_threads())") == expected


def test_number_of_the_environment():
    code = "torch.set_num_threads(1); print(weft.get_num_threads())"
    assert output(code, WEFT_THREADS="3") == "3"


def test_nonsense_number_of_threads():
    code = "import weft; weft.get_num_threads()"
    result = python(code, WEFT_THREADS="abc")
    assert "ConfigError" in result.stderr and "abc" in result.stderr


def test_number_of_threads():
    before = weft.get_num_threads()
    try:
        weft.set_num_threads(1)
        assert weft.get_num_threads() == 1
        with pytest.raises(weft.errors.ConfigError):
            weft.set_num_threads(0)
    finally:
        weft.set_num_threads(before)


def test_calls_follow_torch():
    """A program that was made while torch had one thread can run on more later."""
    code = """
from weft.artifacts.builds import Options
torch.set_num_threads(1)
compiled = weft.compile(torch.nn.Linear(512, 512).requires_grad_(False))
x = torch.randn(256, 512)
expected, threads = compiled(x), []
for number in (1, 2):
    torch.set_num_threads(number)
    assert torch.equal(compiled(x), expected)
    threads.append(compiled.profile(x).threads)
print(threads, Options().threads)
"""
    processors = max(2, len(os.sched_getaffinity(0)))
    assert output(code) == f"[1, 2] {processors}"
