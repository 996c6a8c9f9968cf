# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces of earlier processes: found again where all that a program depends on is equal."""

from __future__ import annotations

import enum
import functools
import io
import os
import subprocess
import sys
import types
import weakref

import pytest
import torch
from torch import nn
from torch._library import custom_ops

import weft
from weft.capture import kept_traces, tracing
from weft.capture.code_names import codes, global_paths
from weft.capture.descriptions import Description, Unknown


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


def helper(x):
    return x.relu()


SCALE = 2.0


class Net(nn.Module):
    """Whatever is set on it decides what it computes."""

    def __init__(self, **settings) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.settings = settings
        self.hook = settings.pop("hook", None)
        self.mode = settings.pop("mode", Mode.FAST)

    def forward(self, x, flag=True):
        x = helper(self.layer(x)) * SCALE
        if self.hook is not None:
            x = self.hook(x)
        if self.mode is Mode.SLOW:
            x = x.flip(0)
        for name, value in self.settings.items():
            x = x * len(name) + value
        return x if flag else -x


@pytest.fixture
def traced(monkeypatch, verified, tmp_path):
    """Counts what is traced. The folder of compiled programs is empty."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_DUMP", raising=False)
    # What other tests define.
    monkeypatch.setattr(torch.library, "_defs", set())
    monkeypatch.setattr(custom_ops, "OPDEFS", weakref.WeakValueDictionary())
    calls = []

    def counted(function, known, keep=None):
        calls.append(function)
        return isolated(function, known, keep)

    isolated = tracing.call_isolated
    monkeypatch.setattr(tracing, "call_isolated", counted)
    return calls


def call(make, *args, **kwargs):
    """As a process does that has compiled nothing yet; twice, compared with eager execution."""
    torch.manual_seed(0)
    module = make()
    compiled = weft.compile(module)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(*args, **kwargs), module(*args, **kwargs))
    assert weft.stats(compiled)["graphs"] == 1
    return compiled


def test_an_equal_program_is_not_traced_again(traced):
    x = torch.randn(3, 4)
    call(Net, x)
    assert len(traced) == 1
    compiled = call(Net, x)
    assert len(traced) == 1
    assert weft.stats(compiled)["hits"] == 2  # the comparison is remembered, too


def other_code(x):
    return x.sigmoid()


CHANGES = {
    "a number": lambda: Net(a=1.5),
    "another number": lambda: Net(a=2.5),
    "a negative zero": lambda: Net(a=-0.0),
    "a zero": lambda: Net(a=0.0),
    "an integer for a float": lambda: Net(a=0),
    "a name": lambda: Net(bb=1.5),
    "two names": lambda: Net(a=1.5, bb=1.5),
    "their order": lambda: Net(bb=1.5, a=1.5),
    "a function": lambda: Net(hook=helper),
    "another function": lambda: Net(hook=other_code),
    "a lambda": lambda: Net(hook=lambda x: x.tanh()),
    "another lambda": lambda: Net(hook=lambda x: x.exp()),
    "a partial": lambda: Net(hook=functools.partial(torch.mul, other=3)),
    "another partial": lambda: Net(hook=functools.partial(torch.mul, other=4)),
    "an enumeration": lambda: Net(mode=Mode.SLOW),
    "a module": lambda: Net(hook=nn.GELU()),
    "its option": lambda: Net(hook=nn.GELU(approximate="tanh")),
    "a subclass": lambda: type("Net", (Net,), {"forward": lambda self, x: self.layer(x)})(),
    "double": lambda: Net().double(),
    "frozen": lambda: Net().requires_grad_(False),
    "without a bias": lambda: setattr(net := Net(), "layer", nn.Linear(4, 4, bias=False)) or net,
    "a wider layer": lambda: setattr(net := Net(), "layer", nn.Linear(4, 5)) or net,
    "eval": lambda: Net().eval(),
}


def test_what_differs_is_traced(traced):
    for number, make in enumerate(CHANGES.values()):
        module = make()
        x = torch.randn(3, 4, dtype=module.layer.weight.dtype)
        call(make, x)
        assert len(traced) == number + 1, list(CHANGES)[number]


def test_globals_are_part_of_it(traced, monkeypatch):
    x = torch.randn(3, 4)
    call(Net, x)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    call(Net, x)
    monkeypatch.setitem(globals(), "helper", other_code)
    call(Net, x)
    monkeypatch.setattr(torch.Tensor, "relu", torch.Tensor.sigmoid)
    call(Net, x)
    monkeypatch.undo()


def test_arguments_are_part_of_it(traced):
    x = torch.randn(4, 4)
    for args in ((x,), (x[:3],), (x.t(),), (x, False), (x.double(),)):
        before = len(traced)
        call((lambda: Net().double()) if args[0].dtype == torch.float64 else Net, *args)
        assert len(traced) == before + 1
    before = len(traced)
    call(Net, x, flag=True)
    call(Net, x, flag=False)
    assert len(traced) == before + 2


class Pair(nn.Module):
    def __init__(self, tied) -> None:
        super().__init__()
        self.one = nn.Linear(4, 4)
        self.two = self.one if tied else nn.Linear(4, 4)

    def forward(self, x, y):
        return self.one(x) + self.two(y) + (1.0 if self.one is self.two else 0.0)


def test_what_is_one_object_is_part_of_it(traced):
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    for tied in (False, True):
        call(lambda tied=tied: Pair(tied), x, y)
        call(lambda tied=tied: Pair(tied), x, x)
    assert len(traced) == 4


def test_operators_of_ones_own_are_part_of_it(traced):
    x = torch.randn(3, 4)

    def define(function):
        operator = torch.library.custom_op("kept::own", function, mutates_args=())
        operator.register_fake(torch.empty_like)
        return operator

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def tripled(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    call(Net, x)
    for count, function in ((2, doubled), (2, doubled), (3, tripled)):
        operator = define(function)
        call(Net, x)
        assert len(traced) == count
        operator._lib._destroy()
        del custom_ops.OPDEFS["kept::own"]


@pytest.mark.parametrize("damage", ["cut", "changed", "foreign", "gone"])
def test_a_damaged_trace_is_made_again(traced, damage, tmp_path, monkeypatch):
    x = torch.randn(3, 4)
    call(Net, x)
    (file,) = tmp_path.glob("*.trace")
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[:50])
    elif damage == "changed":
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "foreign":
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    else:
        file.unlink()
    call(Net, x)
    assert len(traced) == 2


def test_clearing_removes_traces(traced, tmp_path):
    call(Net, torch.randn(3, 4))
    assert [*tmp_path.glob("*.trace")]
    assert weft.cache.clear().programs == 1
    assert not [*tmp_path.glob("*.trace")]


def test_another_process_finds_it(tmp_path):
    """It loads nothing of what traces."""
    program = (
        "import sys, torch, weft\n"
        "from torch import nn\n"
        "torch.manual_seed(0)\n"
        "net = nn.Sequential(nn.Linear(4, 4), nn.GELU()).eval()\n"
        "compiled, x = weft.compile(net), torch.randn(2, 4)\n"
        "with torch.no_grad():\n"
        "    torch.testing.assert_close(compiled(x), net(x))\n"
        "print('torch._dynamo' in sys.modules, weft.stats(compiled)['hits'])\n"
    )
    environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path), "WEFT_VERIFY_PROGRAMS": "first"}
    told = [
        subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert told[0][1] == b"0"
    assert told[1] == [b"False", b"1"]


def digest(value) -> str:
    description = Description()
    description.object(value)
    return description.digest()


def function_of(code: types.CodeType, **of) -> types.FunctionType:
    return types.FunctionType(code.replace(**of), globals())


def test_descriptions_of_equal_things_are_equal():
    for make in (
        lambda: {"a": [1, 2.0, (3, None)], "b": {4}},
        lambda: function_of(helper.__code__),
        lambda: functools.partial(helper, 1),
        lambda: torch.zeros(3),
    ):
        assert digest(make()) == digest(make())
    values = [
        *(1, 1.0, True, "1", b"1", None, (1,), [1], {1: 1}, {1}, frozenset({1}), 0.0, -0.0),
        *(torch.zeros(3), torch.zeros(3).double(), torch.zeros(3, requires_grad=True)),
        *(torch.zeros(3, 1), torch.zeros(6)[::2], nn.Parameter(torch.zeros(3))),
        *(helper, other_code, function_of(helper.__code__, co_consts=(None, 1)), Mode.FAST, Mode),
        *([[1], [2]], [[1, 2]], [[], [1, 2]], ["a", "bc"], ["ab", "c"]),
    ]
    same = [1]
    values += [[same, same], [[1], [1]]]
    assert len({digest(value) for value in values}) == len(values)


@pytest.mark.parametrize("make", [lambda: iter([1]), io.StringIO, Net])
def test_what_has_no_name_elsewhere_is_not_described(make):
    with pytest.raises(Unknown):
        digest(make())


def test_names_behind_many_others():
    """Python writes the numbers of these names in two parts."""
    lines = [f"x.a{n}; y{n}" for n in range(300)] + ["np.pi.real", "last"]
    code = compile("\n".join(lines), "", "exec")
    assert global_paths(code)[-2:] == (("np", "pi", "real"), ("last",))
    assert len([*codes(code)]) == 1


def test_dumps_are_of_traces(traced, monkeypatch, tmp_path):
    x = torch.randn(3, 4)
    call(Net, x)
    monkeypatch.setenv("WEFT_DUMP", str(tmp_path / "dump"))
    assert not kept_traces.may_have(Net())
    call(Net, x)
    assert len(traced) == 2


def test_sources_behind_links_are_part_of_it(tmp_path):
    """A build has links to the folders of the sources."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "rules.py").write_text("")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "rules").symlink_to(tmp_path / "sources")
    assert kept_traces._sources_in(tmp_path / "build") == [
        tmp_path / "build" / "rules" / "rules.py"
    ]
