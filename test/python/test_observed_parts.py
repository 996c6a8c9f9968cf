# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that no program stands for: what they call has programs of its own."""

import gc
import os
import sys
import threading
import warnings
import weakref

import pytest
import torch
from observing import compiled
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")

told: list[object] = []


def parts(function):
    return weft.stats(function).get("parts", {})


def unknown():
    """Nobody knows what it reads."""
    return os.getpid()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(4, 4), 2.0

    def forward(self, x):
        told.append("block")
        return torch.relu(self.inner(x)) * self.scale + x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            x = block(x)
            told.append((number, unknown()))
        return self.head(shifted(x, by=1.0))


def shifted(x, *, by):
    return (x - x.mean()) + by


def check(function, model, calls, **settings):
    """Both tell the same, in the same order."""
    for _ in range(calls):
        x = torch.randn(3, 4)
        told.clear()
        expected, tells = model(x), list(told)
        told.clear()
        assert torch.allclose(function(x), expected, 1e-5, 1e-6) and told == tells


@pytest.mark.parametrize(
    "settings",
    [{"capture": "observe", "backend": "eager"}, {"capture": "observe"}, {}],
    ids=["eager", "native", "default"],
)
def test_children_and_functions_of_a_call_that_breaks_are_captured(settings):
    model = Model()
    fast = weft.compile(model, **settings)
    with torch.no_grad():
        check(fast, model, 9)
    assert parts(fast).keys() == {"Block", "shifted", "Linear"}
    assert weft.stats(fast)["graphs"] == 0 and weft.stats(fast)["breaks"]
    before = parts(fast)["Block"]
    with torch.no_grad():
        check(fast, model, 1)
    assert parts(fast)["Block"] == before + 2


def test_what_parts_read_is_guarded():
    model = Model()
    fast = compiled(model)
    check(fast, model, 8)
    model.blocks[1].scale = 3.0
    check(fast, model, 4)
    model.blocks[0].inner.weight.data.mul_(2)
    model.blocks[0].register_forward_hook(lambda module, args, out: out + 1)
    check(fast, model, 4)
    model.train(False)
    check(fast, model, 2)
    assert parts(fast)["Block"] > 8


def test_parts_train():
    model = Model()
    fast = compiled(model)
    check(fast, model, 8)
    x = torch.randn(3, 4)
    model(x).sum().backward()
    expected = [each.grad.clone() for each in model.parameters()]
    model.zero_grad()
    fast(x).sum().backward()
    assert all(torch.equal(each.grad, want) for each, want in zip(model.parameters(), expected))


def test_of_a_part_that_breaks_its_own_parts_are_captured():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def forward(self, x):
            return self.model(x) + unknown() * 0

    model = Outer()
    fast = compiled(model)
    check(fast, model, 12)
    assert parts(fast).keys() == {"Block", "shifted", "Linear"}


def test_arguments_reach_parts_as_they_were_given():
    def inner(x, *rest, times=2.0, **more):
        return x * times + sum(rest) + sum(more.values())

    def outer(x):
        unknown()
        return inner(x, 1, 2, times=3.0, a=4), inner(x), inner(x, a=x)

    fast, x = compiled(outer), torch.ones(3)
    for _ in range(9):
        assert all(map(torch.equal, fast(x), outer(x)))
    assert len(parts(fast)) == 1


def test_an_error_of_a_part_is_the_users():
    def inner(x):
        return x @ torch.ones(4, 4)

    def outer(x):
        unknown()
        try:
            return inner(x)
        except RuntimeError:
            return inner(x.new_ones(2, 4)) * 2

    fast = compiled(outer)
    for _ in range(8):
        assert torch.equal(fast(torch.ones(3, 4)), torch.full((3, 4), 4.0))
        assert torch.equal(fast(torch.ones(3, 5)), torch.full((2, 4), 8.0))
    assert parts(fast)


def test_what_is_kept_out_is_no_part():
    def inner(x):
        told.append(sys._getframe().f_code.co_name)
        return nn.functional.relu(x * 2) + 1

    outer = compiled(lambda x: weft.disable(inner)(x))
    kept = weft.disable(inner)
    other = compiled(lambda x: kept(x))
    for _ in range(8):
        outer(torch.ones(2)), other(torch.ones(2))
    assert not parts(outer) and not parts(other)


def test_functions_made_in_each_call_are_let_go():
    alive = weakref.WeakSet()

    def outer(x):
        unknown()

        def inner(y):
            return torch.relu(y * 2) + 1

        alive.add(inner)
        return inner(x)

    fast = compiled(outer)
    for _ in range(20):
        fast(torch.ones(2))
    gc.collect()
    assert len(alive) <= 5


def test_a_compiled_part_of_the_users_stays_his():
    block = compiled(Block())

    def outer(x):
        unknown()
        return block(x) * 2

    fast, x = compiled(outer), torch.randn(3, 4)
    for _ in range(8):
        assert torch.equal(fast(x), outer(x))
    assert not parts(fast) and weft.stats(block)["hits"] > 8


def test_a_debugger_sees_what_runs():
    model = Model()
    fast = compiled(model)
    check(fast, model, 8)
    seen = set()

    def trace(frame, event, argument):
        seen.add(frame.f_code.co_name)

    sys.settrace(trace)
    try:
        fast(torch.randn(3, 4))
    finally:
        sys.settrace(None)
    assert "shifted" in seen


def test_other_threads_look_for_no_parts_and_are_observed():
    model, entered, done = Model(), threading.Event(), threading.Event()
    whole = compiled(lambda x: shifted(torch.relu(x), by=1.0))

    def wait(x):
        unknown()
        entered.set()
        done.wait()
        return shifted(x, by=2.0)

    fast, waits = compiled(model), compiled(wait)
    done.set()
    for _ in range(8):
        waits(torch.ones(2))
    done.clear(), entered.clear()
    thread = threading.Thread(target=lambda: waits(torch.ones(2)))
    thread.start()
    entered.wait()
    try:
        check(fast, model, 8)
        whole(torch.ones(2)), whole(torch.ones(2))
        assert weft.stats(whole)["hits"] == 1 and not weft.stats(whole)["breaks"]
    finally:
        done.set()
        thread.join()
    check(fast, model, 4)


def test_callables_and_their_parts_are_let_go():
    def one():
        model = Model()
        fast = compiled(model)
        check(fast, model, 8)
        assert parts(fast)
        return weakref.ref(model)

    gone = one()
    gc.collect()
    assert gone() is None


def test_a_whole_graph_has_no_parts():
    fast = weft.compile(Model(), capture="observe", backend="eager", fullgraph=True)
    for _ in range(6):
        with pytest.raises(weft.errors.NotCompiledError):
            fast(torch.ones(3, 4))


def test_reset_forgets_parts():
    model = Model()
    fast = weft.compile(model)
    check(fast, model, 8)
    assert parts(fast)
    weft.reset(fast)
    assert not parts(fast)
    check(fast, model, 8)
    assert parts(fast)


def test_the_report_names_parts(capsys):
    model = Model()
    fast = compiled(model)
    with warnings.catch_warnings():
        check(fast, model, 8)
    weft.report(fast)
    assert "Block has programs" in capsys.readouterr().out


def test_parts_beside_torch_compile():
    @torch.compile(backend="eager")
    def by_dynamo(x):
        return torch.relu(x) * 2

    def chosen(x, flag):
        return torch.cond(flag, torch.sin, torch.cos, (x,)) + shifted(x, by=1.0)

    def outer(x, flag):
        unknown()
        return chosen(x, flag) + by_dynamo(x) + shifted(by_dynamo(x), by=2.0)

    fast = compiled(outer)
    for number in range(10):
        x, flag = torch.randn(3), torch.tensor(number % 2 == 0)
        assert torch.equal(fast(x, flag), outer(x, flag))
    assert parts(fast)["shifted"] > 4
    torch.compiler.reset()
