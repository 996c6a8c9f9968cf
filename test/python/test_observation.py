# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call reads or does and no guard watches is left to PyTorch, on every call."""

import contextvars
import datetime
import io
import itertools
import logging
import os
import queue
import sys
import threading
import time
import types
import uuid
from datetime import date
from unittest import mock

import pytest
import torch

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "verified")

nn = torch.nn
VARIABLE = contextvars.ContextVar("VARIABLE", default=1.0)
LOCAL = threading.local()
LOCAL.value = 1.0
TICKS = itertools.count()
SCALE = torch.tensor(2.0)
QUEUE: queue.Queue = queue.Queue()
STREAM = io.StringIO()
SIMPLE: queue.SimpleQueue = queue.SimpleQueue()
CONSTANT = 2.0


def unwatched():
    return {
        "context variable": (lambda x: x * VARIABLE.get(), None),
        "thread local": (lambda x: x * LOCAL.value, None),
        "iterator": (lambda x: x + next(TICKS), None),
        "float of a tensor": (lambda x: x * float(SCALE), lambda: SCALE.fill_(5)),
        "item of a tensor": (lambda x: x * SCALE.item(), lambda: SCALE.fill_(6)),
        "tolist": (lambda x: x * SCALE.tolist(), lambda: SCALE.fill_(7)),
        "numpy of a tensor": (lambda x: x * float(SCALE.numpy()), lambda: SCALE.fill_(8)),
        "globals": (lambda x: x * globals()["CONSTANT"], lambda: globals().update(CONSTANT=5.0)),
        "clock": (lambda x: x * (time.perf_counter() > 0), None),
        "date": (lambda x: x * datetime.datetime.now().year, None),
        "imported date": (lambda x: x * date.today().year, None),
        "operating system": (from_os, None),
        "file system": (lambda x: x * os.path.exists("/nowhere"), None),
        "entropy": (lambda x: x * (uuid.uuid4().int > 0), None),
        "thread": (lambda x: x * (threading.get_ident() > 0), None),
        "thread by name": (lambda x: x * len(threading.current_thread().name), None),
        "stream": (lambda x: x * STREAM.tell(), lambda: STREAM.write("more")),
        "queue in C": (lambda x: x * SIMPLE.qsize(), lambda: SIMPLE.put(1)),
        "data": (reseated, None),
    }


def from_os(x):
    from os import environ

    return x * len(environ.get("WEFT_NOWHERE", "one"))


def test_imports_within_a_call_are_watched(monkeypatch):
    settings = types.ModuleType("weft_test_settings")
    settings.SCALE, settings.scaled = 2.0, lambda x: x * settings.SCALE
    monkeypatch.setitem(sys.modules, settings.__name__, settings)

    def imports(x):
        import math

        import torch.nn.functional as F
        from weft_test_settings import SCALE, scaled

        return F.relu(scaled(x)) + math.sqrt(SCALE)

    def changed():
        yield
        settings.SCALE = 4.0
        yield
        settings.scaled = torch.neg
        yield
        other = types.ModuleType(settings.__name__)
        other.SCALE, other.scaled = 9.0, torch.sin
        monkeypatch.setitem(sys.modules, settings.__name__, other)
        yield

    compiled, x = weft.compile(imports), torch.randn(5)
    for graphs, _ in enumerate(changed(), start=1):
        for _ in range(3):
            torch.testing.assert_close(compiled(x), imports(x))
        assert (compiled.stats()["graphs"], compiled.stats()["breaks"]) == (graphs, [])


def reseated(x):
    x.data = x.data * 2
    return x + 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", unwatched())
def test_reads_without_a_guard_stay_eager(name):
    function, change = unwatched()[name]
    compiled = weft.compile(function, capture="export")
    for _ in range(3):
        compiled(torch.ones(2))
    assert compiled.stats()["graphs"] == 0 and compiled.stats()["breaks"]
    if change is not None:
        change()
        assert torch.equal(compiled(torch.ones(2)), function(torch.ones(2)))


def test_prints_and_logs_are_heard_on_each_call(capsys, caplog):
    def tells(x):
        print("shape", tuple(x.shape))
        logging.getLogger("test").warning("called")
        return x + 1

    compiled = weft.compile(tells)
    for _ in range(3):
        compiled(torch.ones(2))
    assert capsys.readouterr().out == "shape (2,)\n" * 3
    assert [record.message for record in caplog.records] == ["called"] * 3


def test_files_are_written_once_a_call(tmp_path):
    path = tmp_path / "log"

    def writes(x):
        with open(path, "a") as file:
            file.write("x")
        return x + 1

    compiled = weft.compile(writes)
    for _ in range(3):
        compiled(torch.ones(2))
    assert path.read_text() == "xxx"


def test_an_open_stream_is_written_once_a_call():
    stream = io.StringIO()

    def writes(x):
        print("x", end="", file=stream)
        return x + 1

    compiled = weft.compile(writes)
    for _ in range(3):
        compiled(torch.ones(2))
    assert stream.getvalue() == "xxx"


def test_containers_of_the_call_are_filled_as_in_eager():
    def fills(batch):
        batch["mean"] = batch["tokens"].mean(1)
        return batch

    compiled = weft.compile(fills)
    for _ in range(3):
        batch = {"tokens": torch.ones(2, 5)}
        result = compiled(batch)
        assert result is batch and list(batch) == ["tokens", "mean"]


def test_what_an_object_collects_is_collected():
    def collects(x):
        QUEUE.put(x * 2)
        return x

    compiled = weft.compile(collects)
    for _ in range(3):
        compiled(torch.ones(2))
    assert QUEUE.qsize() == 3


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight * getattr(self.weight, "scale", 1.0)


def follows(model, x, *changes):
    """Whether compiled calls are eager's before and after each change, and compiled at first."""
    compiled = weft.compile(model)
    for change in (lambda: None, *changes):
        change()
        for _ in range(3):
            assert torch.equal(compiled(x), model(x))
    return compiled.stats()


def test_attributes_of_parameters_are_watched():
    model = Scaled()
    stats = follows(
        model,
        torch.ones(3),
        lambda: setattr(model.weight, "scale", 3.0),
        lambda: setattr(model.weight, "scale", 4.0),
        lambda: delattr(model.weight, "scale"),
    )
    assert stats["graphs"] == 3 and not stats["breaks"]


def test_patched_layers_and_functions_are_watched(monkeypatch):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    old = nn.Linear.forward
    stats = follows(
        model,
        torch.ones(2, 3),
        lambda: monkeypatch.setattr(nn.Linear, "forward", lambda self, x: old(self, x) * 2),
        lambda: monkeypatch.setattr(nn.functional, "relu", lambda x, inplace=False: torch.relu(-x)),
    )
    assert not stats["breaks"]


def test_edited_graphs_are_watched():
    model = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))

    def edit():
        output = next(iter(model.graph.find_nodes(op="output")))
        with model.graph.inserting_before(output):
            output.args = (model.graph.call_function(torch.neg, (output.args[0],)),)
        model.recompile()

    assert not follows(model, torch.ones(2, 3), edit)["breaks"]


def test_attributes_of_arguments_stay_eager():
    tagged = torch.ones(3)
    compiled = weft.compile(lambda x: x * getattr(x, "tag", 1.0))
    compiled(tagged), compiled(tagged)
    tagged.tag = 5.0
    assert compiled(tagged).tolist() == [5, 5, 5]


def test_a_mocked_configuration_is_watched():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.config = mock.MagicMock(scale=2.0)

        def forward(self, x):
            return x * self.config.scale

    model = Model()
    stats = follows(model, torch.ones(3), lambda: setattr(model.config, "scale", 3.0))
    assert stats["graphs"] == 2 and not stats["breaks"]
