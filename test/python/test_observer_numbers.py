# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that a call both uses and changes: inputs of a program from the second capture on."""

import copy
from collections import deque

import pytest
import torch
from observing import compiled
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")

state = {"calls": 0, "share": 1.0}


class Average(nn.Module):
    """An exponential moving average whose decay warms up."""

    def __init__(self):
        super().__init__()
        self.calls, self.decay, self.share = 0, 0.3, 1.0
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x):
        self.calls += 1
        decay = max(self.decay, (1 + self.calls) / (10 + self.calls))
        self.mean.mul_(decay).add_(x.mean(0) * (1 - 0.9**self.calls))
        self.share = self.share * 0.99
        return self.mean * self.share + self.decay, self.calls, float(decay), +self.share


class Ahead(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(2, 2), 0

    def forward(self, x):
        y = self.layer(x) + self.calls
        self.calls += 1
        return y, [self.calls, (self.calls, -self.calls // 3)], float(self.calls)


class Looked(nn.Module):
    """At what the number is: each value has a program, and each path."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls = self.calls + 1
        if self.calls > 5:
            return x * self.calls
        return x[: self.calls] * 2, f"{self.calls}", list(range(self.calls))


class Twice(nn.Module):
    """Two places with one object, and a third that is set to it."""

    def __init__(self):
        super().__init__()
        self.first = self.second = self.third = 7

    def forward(self, x):
        y = x * self.first + self.second
        self.first = self.first + 1
        self.second = self.second * 2
        self.third, z = self.first, self.third
        return y, z, self.third, x * self.first


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.allclose(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize(
    ("make", "hits"),
    [(Average, 6), (Ahead, 6), (Looked, 1), (Twice, 6)],
    ids=lambda each: str(each),
)
def test_numbers_of_modules(make, hits, backend):
    model = make().requires_grad_(False)
    twin, fast = copy.deepcopy(model), compiled(model, backend)
    for _ in range(8):
        x = torch.randn(8, 2)
        assert same(fast(x), twin(x))
        for name in ("calls", "share", "first", "second", "third", "mean"):
            assert same(getattr(model, name, None), getattr(twin, name, None)), name
    assert not weft.stats(fast)["breaks"] and weft.stats(fast)["hits"] >= hits
    if hasattr(model, "calls"):  # other types, and values that others set
        for value in (3, 2.5, 10**30, -4, torch.ones(()), 1):
            if make is Looked and not isinstance(value, int):
                continue
            model.calls, twin.calls = copy.deepcopy(value), copy.deepcopy(value)
            for _ in range(2):
                x = torch.randn(8, 2)
                try:
                    expected = twin(x)
                except (OverflowError, RuntimeError) as error:
                    with pytest.raises(type(error)):
                        fast(x)
                else:
                    assert same(fast(x), expected), value
                assert same(model.calls, twin.calls)


def of_globals(x):
    state["calls"] += 1
    state["share"] *= 1.5
    return x * state["calls"] + state["share"]


def test_numbers_in_a_dict():
    fast, x = compiled(of_globals), torch.ones(2)
    for number in range(1, 8):
        assert torch.equal(fast(x), x * number + 1.5**number)
        assert state == {"calls": number, "share": 1.5**number}
    assert weft.stats(fast)["captures"] == 2 and weft.stats(fast)["hits"] == 5


def test_what_only_others_change_is_an_input_at_its_second_value():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2

        def forward(self, x):
            return x * self.scale

    model, x = Scaled(), torch.ones(2)
    fast = compiled(model)
    for scale in (2, 3, 3, 2, 3, 7, -1):
        model.scale = scale
        assert torch.equal(fast(x), x * scale)
    assert weft.stats(fast)["captures"] == 2
    assert "type(self.scale) is int" in fast.guards()


def test_identities_stay_those_of_the_objects():
    class Same(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = self.other = 0

        def forward(self, x):
            calls = self.calls
            found = calls is self.other, self.calls is calls
            self.calls = self.other = calls + 1
            return x * calls, found, self.calls is self.other

    model, twin, x = Same(), Same(), torch.ones(2)
    fast = compiled(model)
    for _ in range(6):
        assert same(fast(x), twin(x))


def test_a_number_that_an_error_leaves_behind():
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            try:
                return x * {1: 2.0}[self.calls]
            except KeyError:
                return x - self.calls

    model, twin, x = Fails(), Fails(), torch.ones(2)
    fast = compiled(model)
    for _ in range(6):
        assert same(fast(x), twin(x)) and model.calls == twin.calls


class Sized:
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __contains__(self, each):
        return self.size - 3


def popped(n):
    return [1, 2, 3, 4, 5, 6, 7, 8].pop(n)


def inserted(n):
    values = [1, 2, 3, 4, 5, 6, 7, 8]
    values.insert(n, 0)
    return values


def rotated(n):
    values = deque([1, 2, 3, 4, 5])
    values.rotate(n)
    return list(values)


def updated(n):
    values = {1}
    values.update([n % 2])
    return len(values)


LOOKED_AT = [
    *(popped, inserted, rotated, updated),
    lambda n: len(Sized(n)),
    lambda n: 1 if Sized(n - 1) else 2,
    lambda n: 3 in Sized(n),
    lambda n: sorted(set(each % n for each in [1, 4])),  # noqa: C401
    lambda n: sorted(set(map(lambda each: each % n, [1, 4]))),
    lambda n: sorted(dict((each % n, 1) for each in [1, 4])),  # noqa: C402
    lambda n: sorted(dict.fromkeys(each % n for each in [1, 4])),
]


@pytest.mark.parametrize("function", LOOKED_AT)
def test_numbers_that_functions_in_c_look_at_are_constants(function):
    class Model:
        calls = 0

        def forward(self, x):
            self.calls += 1
            return function(self.calls), x * 0.5**self.calls

    model, twin, x = Model(), Model(), torch.ones(2)
    fast = compiled(model.forward)
    for _ in range(6):
        found, expected = fast(x), twin.forward(x)
        assert found[0] == expected[0] and torch.equal(found[1], expected[1])


def test_a_graph_of_the_callers_is_passed_once():
    def f(h, p):
        (gradient,) = torch.autograd.grad(h.sum(), p)
        return gradient * 2 if gradient.sum() > 5 else gradient * 3

    fast = compiled(f)
    for k in (1, 1, 1, 5, 1):
        p = torch.full((2,), 2.0, requires_grad=True)
        other = p.detach().clone().requires_grad_()
        assert torch.equal(fast(p * p * k, p), f(other * other * k, other))


@pytest.mark.parametrize("capture", [None, "observe"])
def test_a_number_where_a_tensor_was_is_guarded(capture, verified):
    """In a list, and in a variable of an enclosing function."""
    items, cell = [1.0], 1.0

    def of_items(x):
        return x + sum(items)

    def of_cell(x):
        return x + cell * 2 if isinstance(cell, float) and cell > 3 else x + cell

    fast, also, x = (
        *(weft.compile(f, capture=capture) for f in (of_items, of_cell)),
        torch.ones(2),
    )
    tensor = torch.tensor(3.0)
    for each in (1.0, 1.0, tensor, tensor, 1.0, 1.0, 5.0, 5.0, 1.0, 1.0, -0.0, -0.0, 1.0, 5.0):
        items[0] = cell = each
        assert torch.equal(fast(x), of_items(x)) and torch.equal(also(x), of_cell(x))


class Indexed:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number

    def __float__(self):
        return self.number / 2


def chosen(n):
    return next(iter(lambda: n, 3), None)


METHODS_THAT_C_ASKS = [
    chosen,
    lambda n: "ab" * Indexed(n),
    lambda n: Indexed(n) * (1, 2),
    lambda n: "%d" % Indexed(n),  # noqa: UP031
    lambda n: "%.2f" % Indexed(n),  # noqa: UP031
]


@pytest.mark.parametrize("function", METHODS_THAT_C_ASKS)
def test_what_methods_give_to_c_is_constant(function):
    test_numbers_that_functions_in_c_look_at_are_constants(function)


def test_an_error_of_a_number_leaves_what_was_there(verified):
    """The operation fails behind writes to a list and a tensor, in each of three attempts."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.number, self.seen = 5, []

        def forward(self, x):
            self.number -= 1
            x.mul_(2)
            self.seen.append(self.number)
            return x * (12 / self.number)

    model, twin = Model(), Model()
    fast = compiled(model)
    x, y = torch.ones(1), torch.ones(1)
    for number in (4, 3, 2, 1, 0, -1):
        if number:
            assert torch.equal(fast(x), twin(y))
        else:
            for call, given in ((fast, x), (twin, y)):
                with pytest.raises(ZeroDivisionError):
                    call(given)
        assert model.seen == twin.seen and torch.equal(x, y)


def test_numbers_that_get_finds():
    """`counts[key] = counts.get(key, 0) + 1`"""

    def call(counts, x):
        steps = counts.get("steps", 0)
        counts["steps"] = steps + 1
        return x * counts["steps"] if steps != 9 else x - 1

    mine, others, x = {}, {}, torch.ones(2)
    fast = compiled(lambda x: call(mine, x))
    for step in range(12):
        if step == 6:
            mine["steps"] = others["steps"] = 8
        assert fast(x).tolist() == call(others, x).tolist()
        assert mine == others
    stats = weft.stats(fast)
    assert stats["graphs"] <= 4 and not stats["breaks"]
