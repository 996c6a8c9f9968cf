# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing works on a replica: neither threads nor attributes of the user's module see it."""

import functools
import threading
import types
import weakref

import pytest
import torch

import weft
from weft.references import find_references
from weft.replica import replicate

pytestmark = pytest.mark.usefixtures("no_grad")

nn = torch.nn


class Settings:
    def __init__(self):
        self.scale, self.kind = 2.0, None


class Model(nn.Module):
    """Refers to its parts in every way that a replica has to follow."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.again = self.second
        self.listed = [self.first, {"second": self.second}]
        self.pair = (self.first, 3)
        self.part = functools.partial(self.second, **{})
        self.parent = weakref.ref(self)
        self.method = self.helper
        self.settings = Settings()
        self.register_buffer("shift", torch.ones(4))

    def helper(self, x):
        return self.again(x) * self.settings.scale

    def forward(self, x):
        x = self.pair[0](x) + self.listed[1]["second"](x) + self.part(x)
        return self.method(x) + self.parent().shift


def replica_of(target):
    return replicate(target, find_references(target))


def test_a_replica_shares_tensors_only():
    model = Model()
    twin = replica_of(model).target
    assert twin is not model and type(twin) is Model
    assert twin.first is not model.first and twin.first.weight is model.first.weight
    assert twin.again is twin.second and twin.listed[0] is twin.first
    assert twin.pair[0] is twin.first and twin.part.func is twin.second
    assert twin.parent() is twin and twin.method.__self__ is twin
    assert twin.settings is not model.settings
    twin.shift = torch.zeros(4)
    twin.settings.scale = 3.0
    assert model.shift.sum() == 4 and model.settings.scale == 2.0


def test_a_bound_method_has_a_replica():
    model = Model()
    twin = replica_of(model.helper).target
    assert isinstance(twin, types.MethodType) and twin.__self__ is not model


def test_what_finds_its_module_elsewhere_has_none():
    model = Model()
    model.method = lambda x: model.second(x)
    assert replica_of(model).target is model
    function = lambda x: model(x)  # noqa: E731
    assert replica_of(function).target is function


def test_what_cannot_be_copied_has_none():
    class Stubborn:
        def __init__(self):
            self.value = 1

        def __copy__(self):
            raise TypeError("not to be copied")

    class Forgetful(Stubborn):
        def __copy__(self):
            twin = Forgetful()
            twin.more = 2
            return twin

    for kind in (Stubborn, Forgetful):
        model = Model()
        model.settings.other = kind()
        assert replica_of(model).target is model


@pytest.mark.usefixtures("compiled_only")
def test_compiled_through_its_replica():
    model, x = Model(), torch.randn(3, 4)
    compiled = weft.compile(model)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x))
    model.settings.scale = 5.0
    torch.testing.assert_close(compiled(x), model(x))
    model.first.weight.mul_(2)
    torch.testing.assert_close(compiled(x), model(x))
    model.first.weight = nn.Parameter(torch.randn(4, 4))
    torch.testing.assert_close(compiled(x), model(x))


def test_other_threads_may_call_the_module_while_it_is_traced(compiled_only):
    class Watched(nn.Module):
        """Lets another thread call the module in the middle of the tracing."""

        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(8, 8), nn.GRU(8, 8))

        def forward(self, x):
            y = self.inner(x)[0]
            meet(x)
            return y * 2

    def meet(x):
        if type(x) is not torch.Tensor:
            tracing.set()
            assert called.wait(60)

    tracing, called = threading.Event(), threading.Event()
    model, x = Watched().eval(), torch.randn(5, 8)
    expected = model(x)
    found = []

    def call():
        assert tracing.wait(60)
        with torch.no_grad():
            found.append(model(x))
        called.set()

    thread = threading.Thread(target=call)
    thread.start()
    compiled = weft.compile(model)
    result = compiled(x)
    thread.join()
    torch.testing.assert_close(result, expected)
    (eager,) = found
    assert type(eager) is torch.Tensor
    torch.testing.assert_close(eager, expected, rtol=0, atol=0)
