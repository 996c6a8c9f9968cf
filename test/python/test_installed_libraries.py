# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that call installed libraries: those of `pip install --target`, which lie beside the
user's own code, tables by class such as einops fills, and loggers that hold a stream."""

import pytest
import torch
from processes import python
from torch import nn

import weft

LIBRARY = """
import sys
import threading
import torch

scale = 1.0
tables = {}


class Backend:
    def flatten(self, x):
        return x.reshape(x.shape[0], -1) * scale


def backend_of(x):
    found = tables.get(type(x))
    if found is None:
        tables[type(x)] = found = Backend()
    return found


def flatten(x):
    return backend_of(x).flatten(x)


class Logger:
    def __init__(self):
        self._stream = sys.__stderr__
        self._of_thread = threading.local()

    def info(self, text):
        self._stream.write(text)


logger = Logger()
"""
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import {name} as library
import torch
import weft


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 2)

    def forward(self, x):
        if {logs}:
            library.logger.info("called.")
        return self.linear(library.flatten(x))


model = Model()
compiled = weft.compile(model)
with torch.no_grad():
    for _ in range(4):
        x = torch.randn(2, 2, 3)
        torch.testing.assert_close(compiled(x), model(x))
    if {logs} is None:
        library.scale = 2.0
        torch.testing.assert_close(compiled(x), model(x))
stats = weft.stats(compiled)
print(stats["graphs"], stats["hits"] > 0, stats["breaks"])
"""


@pytest.fixture
def folder(tmp_path):
    """A library that an installer has put into it, and the same as code of the user's."""
    for name in ("installed", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(LIBRARY)
    record = tmp_path / "installed-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("installed/__init__.py,,\ninstalled-1.0.dist-info/RECORD,,\n")
    return tmp_path


def run(folder, name, logs):
    done = python(PROGRAM.format(name=name, logs=logs), str(folder), WEFT_VERIFY_PROGRAMS="first")
    assert done.returncode == 0, done.stderr
    return done


def test_a_library_with_a_table_by_class_and_a_logger(folder):
    done = run(folder, "installed", logs=False)
    assert done.stdout.startswith("1 True []")


@pytest.mark.at_length
def test_what_a_library_prints_is_heard(folder):
    done = run(folder, "installed", logs=True)
    assert done.stdout.startswith("0 False") and "the call prints" in done.stdout
    assert done.stderr.count("called.") == 8  # each of the two, four times


@pytest.mark.at_length
def test_the_same_beside_it_is_the_users_own(folder):
    done = run(folder, "own", logs=None)
    assert done.stdout.split()[1] == "True"


class Backend:
    def flatten(self, x):
        return x.reshape(x.shape[0], -1)


@pytest.mark.usefixtures("no_grad", "verified")
def test_a_table_by_class_that_holds_the_tensors_class_is_complete():
    """A trace enters its own tensors' class."""
    backend, tables = Backend(), {}

    def f(x):
        if type(x) not in tables:
            tables[type(x)] = backend
        return tables[type(x)].flatten(x) * 2

    compiled, x = weft.compile(f), torch.randn(2, 2, 3)
    for _ in range(4):
        torch.testing.assert_close(compiled(x), x.reshape(2, 6) * 2)
    assert weft.stats(compiled)["graphs"] == 1
    assert list(tables) == [torch.Tensor]
    other = Backend()
    other.flatten = lambda x: x.reshape(x.shape[0], -1) + 1
    tables[torch.Tensor] = other
    torch.testing.assert_close(compiled(x), (x.reshape(2, 6) + 1) * 2)


@pytest.mark.usefixtures("no_grad", "verified")
def test_a_count_by_class_is_kept():
    counts = {}

    class Model(nn.Module):
        def forward(self, x):
            counts[type(x)] = counts.get(type(x), 0) + 1
            return x * 2

    compiled, x = weft.compile(Model()), torch.randn(3)
    for _ in range(5):
        torch.testing.assert_close(compiled(x), x * 2)
    assert counts == {torch.Tensor: 5}
