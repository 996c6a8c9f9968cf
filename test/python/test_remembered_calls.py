# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Python's own decorators keep between calls: results, implementations, methods by type."""

import functools

import pytest
import torch
from torch import nn

import weft
from weft.capture import remembered_calls

pytestmark = [
    pytest.mark.usefixtures("no_grad", "verified"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]


@functools.lru_cache
def noise(n):
    return torch.randn(n)


@functools.cache
def table(n):
    return torch.arange(float(n))


@pytest.fixture(autouse=True)
def forgotten():
    noise.cache_clear()
    table.cache_clear()


@pytest.mark.parametrize("maxsize", [None, 2, 128])
def test_entries_and_results(maxsize):
    @functools.lru_cache(maxsize)
    def function(key):
        return {key: 1}

    for key in (1, "a", 3.0, 1):
        function(key)
    entries = remembered_calls.entries(function)
    assert len(entries) == function.cache_info().currsize
    assert remembered_calls.results(function)[-1] is function(1 if maxsize == 2 else 3.0)
    function.cache_clear()
    assert remembered_calls.entries(function) is entries and not entries


def test_what_is_remembered_is_not_drawn_again():
    compiled = weft.compile(lambda x: x + noise(3))
    x = torch.zeros(3)
    first = compiled(x)
    for _ in range(3):
        assert torch.equal(compiled(x), first)
    noise.cache_clear()
    second = compiled(x)
    assert not torch.equal(second, first)
    for _ in range(3):
        assert torch.equal(compiled(x), second)
    assert weft.stats(compiled)["hits"]


def test_what_is_remembered_may_change():
    compiled = weft.compile(lambda x: x + table(3))
    for _ in range(3):
        assert compiled(torch.zeros(3)).tolist() == [0, 1, 2]
    table(3).add_(1)
    for _ in range(3):
        assert compiled(torch.zeros(3)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("function", [table, lambda n: table(n)], ids=["itself", "called"])
def test_the_same_object_comes_back(function):
    compiled = weft.compile(function)
    for _ in range(3):
        assert compiled(3) is table(3)


@pytest.mark.parametrize("settings", [{}, {"capture": "observe", "backend": "eager"}], ids=str)
def test_calls_are_counted_as_in_eager(settings):
    caches = []

    def make():
        @functools.lru_cache(maxsize=2)
        def scale(n, *, by):
            return n * by

        @functools.cache
        def mask(n):
            return torch.arange(float(n))

        caches.append((scale, mask))
        return lambda x: x * scale(x.shape[0], by=2.0) + mask(3)[0] + scale(3, by=2.0)

    def counts():
        return [[each.cache_info() for each in made] for made in caches]

    eager, compiled = make(), weft.compile(make(), **settings)
    for size in (3, 3, 3, 3, 4, 4, 4, 5, 3, 3):
        x = torch.ones(size)
        assert torch.equal(compiled(x), eager(x)) and counts()[0] == counts()[1]
    assert weft.stats(compiled)["hits"]
    for each in (*caches[0], *caches[1]):
        each.cache_clear()
    for _ in range(3):
        assert torch.equal(compiled(x), eager(x)) and counts()[0] == counts()[1]


def test_a_method_that_remembers():
    class Model(nn.Module):
        scale = 2.0

        @functools.lru_cache  # noqa: B019  (of this test's objects alone)
        def positions(self, n):
            return torch.rand(n) * self.scale

        def forward(self, x):
            return x + self.positions(x.shape[-1])

    model = Model()
    compiled, x = weft.compile(model), torch.zeros(3)
    for change in (lambda: None, lambda: setattr(model, "scale", 5.0), Model.positions.cache_clear):
        change()
        for _ in range(3):
            assert torch.equal(compiled(x), model.positions(3))


def test_implementations_by_type():
    @functools.singledispatch
    def chosen(value, x):
        return x

    compiled = weft.compile(lambda value, x: chosen(value, x))
    for _ in range(3):
        assert compiled("a", torch.ones(2)).tolist() == [1, 1]
    factor = 9.0
    chosen.register(str, lambda value, x: x * factor)
    for _ in range(3):
        assert compiled("a", torch.ones(2)).tolist() == [9, 9]
    factor = 7.0
    for _ in range(3):
        assert compiled("a", torch.ones(2)).tolist() == [7, 7]


SCALE = 1.0


def scaled(x):
    return x * SCALE


class Members(nn.Module):
    """Each method reads a global by way of another kind of member."""

    TABLE = {"scaled": scaled}
    partial = functools.partialmethod(lambda self, by, x: x * by * SCALE, 10.0)

    @functools.cached_property
    def cached(self):
        return SCALE

    @functools.singledispatchmethod
    def dispatched(self, value, x):
        return x * SCALE * 1000

    @property
    def written(self):
        return self.scale

    @written.setter
    def written(self, value):
        self.scale = value * SCALE

    def forward(self, x):
        return self.TABLE["scaled"](x) + self.partial(x) + self.dispatched(1, x)


def test_what_members_of_a_class_read(monkeypatch):
    model = Members()
    compiled = weft.compile(model)
    for scale in (1.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        for _ in range(3):
            assert compiled(torch.ones(1)).item() == 1011 * scale
    monkeypatch.setitem(Members.TABLE, "scaled", torch.neg)
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 2020 - 1
    assert weft.stats(compiled)["hits"]
