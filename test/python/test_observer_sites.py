# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places that have another object in each call, such as running values that are kept as plain
attributes: what is there is an input of one program, not a constant of a program for each call."""

import pytest
import torch
from observing import compiled
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")

running = None


def captures(function):
    return weft.stats(function)["captures"]


class Running(nn.Module):
    """As batch norms of complex numbers that are written by hand keep their averages."""

    def __init__(self):
        super().__init__()
        self.average = None

    def forward(self, x):
        now = x.mean(0)
        self.average = now if self.average is None else 0.9 * self.average + 0.1 * now
        return x - self.average


class Pyramid(nn.Module):
    """What it keeps is a list, a dict and a tuple of tensors, all of them new."""

    def __init__(self):
        super().__init__()
        self.levels = None

    def forward(self, x):
        if self.levels is not None:
            x = x + self.levels[0] + self.levels[1]["a"][0]
        self.levels = [x * 0.5, {"a": (x * 0.25,)}]
        return x


class Entries(nn.Module):
    """Containers that stay, with tensors that do not."""

    def __init__(self):
        super().__init__()
        self.cache, self.pair = {}, [None, None]

    def forward(self, x):
        before, other = self.cache.get("x"), self.pair[1]
        if before is not None:
            x = x + before
        if other is not None:
            x = x - other
        self.cache["x"], self.pair[1] = x * 0.5, x * 0.25
        return x


class State:
    def __init__(self, value):
        self.value = value


class Objects(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = State(torch.zeros(3))

    def forward(self, x):
        y = x + self.state.value
        self.state = State(y * 0.5)
        return y


class Buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        self.mean = 0.5 * self.mean + x.mean(0)
        return x - self.mean


class Slotted:
    __slots__ = ("last",)

    def __init__(self):
        self.last = torch.zeros(3)

    def __call__(self, x):
        y, self.last = x + self.last, x * 2
        return y


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        *((each, "eager") for each in (Running, Pyramid, Entries, Objects, Buffer)),
        *((each, "native") for each in (Running, Pyramid)),
    ],
)
def test_state_that_is_new_in_each_call(kind, backend):
    model, twin = kind(), kind()
    fast = compiled(model, backend)
    with torch.no_grad():
        for _ in range(7):
            x = torch.randn(2, 3)
            torch.testing.assert_close(fast(x), twin(x))
    assert captures(fast) == 2 and weft.stats(fast)["hits"] == 5
    with torch.no_grad():  # by another path of the same kind
        weft.reset(fast)
        for _ in range(4):
            x = torch.randn(2, 3)
            torch.testing.assert_close(fast(x), twin(x))


def test_variables_that_are_new_in_each_call():
    global running
    running, kept = torch.zeros(3), torch.zeros(3)

    def step(x):
        global running
        nonlocal kept
        y = x + running + kept
        running, kept = y * 0.5, y * 0.25
        return y

    fast, first, second = compiled(step), torch.zeros(3), torch.zeros(3)
    for _ in range(7):
        x = torch.randn(3)
        expected = x + first + second
        first, second = expected * 0.5, expected * 0.25
        assert torch.equal(fast(x), expected)
        assert torch.equal(running, first) and torch.equal(kept, second)
    assert captures(fast) == 2


def test_slots_of_an_object_are_right():
    state, twin = Slotted(), Slotted()
    fast = compiled(lambda x: state(x))
    for number in range(8):
        x = torch.randn(3)
        if number == 4:
            state.last, twin.last = x.double(), x.double()
        assert torch.equal(fast(x), twin(x)) and torch.equal(state.last, twin.last)
    assert captures(fast) == 3 and weft.stats(fast)["hits"] == 5


def test_what_is_stored_and_not_read_has_no_guard():
    class Last(nn.Module):
        def forward(self, x):
            self.last = x * 2
            return x + 1

    model, x = Last(), torch.ones(3)
    fast = compiled(model)
    for number in range(5):
        assert torch.equal(fast(x + number), x + number + 1)
        assert torch.equal(model.last, 2 * (x + number))
    assert captures(fast) == 1


def test_the_form_of_what_is_found_is_guarded():
    model, twin = Running(), Running()
    fast, x = compiled(model), torch.randn(2, 3)
    for _ in range(4):
        fast(x), twin(x)
    changes = [
        lambda each: setattr(each, "average", each.average.double()),
        lambda each: setattr(each, "average", torch.zeros(1)),
        lambda each: setattr(each, "average", torch.zeros(3).requires_grad_()),
        lambda each: setattr(each, "average", None),
        lambda each: setattr(each, "average", 2.5),
        lambda each: delattr(each, "average"),
    ]
    for change in changes:
        change(model), change(twin)
        if not hasattr(twin, "average"):
            with pytest.raises(AttributeError):
                fast(x)
            continue
        for _ in range(3):
            found, wanted = fast(x), twin(x)
            assert torch.equal(found, wanted) and found.dtype == wanted.dtype
            assert found.requires_grad == wanted.requires_grad


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_what_is_found_may_be_anything_else_that_the_call_knows(backend):
    class Writing(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("fixed", torch.ones(3))
            self.state = torch.zeros(3)

        def forward(self, x):
            before = self.state
            before.add_(1)
            y = x * 2 + self.fixed
            self.state = before * 2
            return y + before, before is x, before is self.fixed

    def same(found, wanted):
        torch.testing.assert_close(found[0], wanted[0])
        assert found[1:] == wanted[1:]

    model, twin = Writing(), Writing()
    fast = compiled(model, backend)
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(3)
            same(fast(x.clone()), twin(x.clone()))
        assert captures(fast) == 2
        for _ in range(2):
            for each in (model, twin):
                each.state = each.fixed
            same(fast(torch.ones(3)), twin(torch.ones(3)))
            x, y = torch.ones(3), torch.ones(3)
            model.state, twin.state = x, y
            same(fast(x), twin(y))
            assert torch.equal(x, y)
            x, y = torch.ones(6), torch.ones(6)
            model.state, twin.state = x[:3], y[:3]
            same(fast(x[1:4]), twin(y[1:4]))
            assert torch.equal(x, y)


def test_state_with_gradients():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.state = nn.Linear(3, 3), None

        def forward(self, x):
            y = self.layer(x)
            if self.state is not None:
                y = y + self.state
            self.state = y.tanh()
            return y

    model, twin = Recurrent(), Recurrent()
    twin.load_state_dict(model.state_dict())
    fast = compiled(model)
    found = wanted = 0
    for _ in range(5):
        x = torch.randn(2, 3)
        found, wanted = found + fast(x).sum(), wanted + twin(x).sum()
    found.backward(), wanted.backward()
    assert torch.equal(model.layer.weight.grad, twin.layer.weight.grad)
    assert captures(fast) == 2


def test_modules_and_parameters_stay_constants():
    model = nn.Sequential(nn.Linear(3, 3))
    fast, x = compiled(model), torch.randn(2, 3)
    with torch.no_grad():
        for _ in range(3):
            model[0] = nn.Linear(3, 3)
            model[0].weight = nn.Parameter(torch.randn(3, 3))
            for _ in range(2):
                assert torch.equal(fast(x), model[0](x))
    assert not any("self._modules['0']:" in each for each in fast.guards())


def test_a_call_that_is_left_keeps_the_state():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.state = torch.zeros(3)

        def forward(self, x):
            self.state = self.state + x
            return x * 2 if self.state.sum() > 0 else x * 3

    model, twin = Branch(), Branch()
    fast = compiled(model)
    for number in range(10):
        x = torch.randn(3) * (-1) ** number * (number + 1)
        assert torch.equal(fast(x), twin(x)) and torch.equal(model.state, twin.state)
    assert captures(fast) <= 4


def test_what_a_first_call_sets_is_an_input_of_the_next():
    model, twin = Running(), Running()
    fast = weft.compile(model)
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(2, 3)
            torch.testing.assert_close(fast(x), twin(x))
    assert weft.stats(fast)["graphs"] == 1 and weft.stats(fast)["hits"] >= 3
