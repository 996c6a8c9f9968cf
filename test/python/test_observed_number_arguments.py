# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of observed calls that are other numbers in each call: one program stands for all, and
compiled code takes them, and what Python computes of them."""

import copy
import dataclasses
import math

import pytest
import torch
from observing import compiled
from torch import nn

import weft
from weft.compiled.module import callable_of

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
both = pytest.mark.parametrize("backend", ["eager", "native"])


class Annealed(nn.Module):
    """It keeps what it was called with, so that it is observed."""

    def __init__(self):
        super().__init__()
        self.layer, self.seen, self.last = nn.Linear(3, 3), [], None

    def forward(self, x, t, *, power=2):
        self.seen.append(t)
        self.last = power * t
        return self.layer(x) * math.cos(t) + t**power, t, power / 4


def same(fast, plain, *args, **kwargs):
    found, expected = fast(*args, **kwargs), plain(*args, **kwargs)
    torch.testing.assert_close(found, expected)
    assert [type(each) for each in found[1:]] == [type(each) for each in expected[1:]]


@both
def test_one_program_stands_for_all_numbers(backend):
    model, twin = Annealed(), Annealed()
    twin.load_state_dict(model.state_dict())
    fast = compiled(model, backend)
    with torch.no_grad():
        for number in range(10):
            same(fast, twin, torch.randn(2, 3), 0.1 * number + 1, power=number)
    assert model.seen == twin.seen and model.last == twin.last
    stats = weft.stats(fast)
    assert stats["captures"] == 2 and stats["hits"] == 8
    assert not stats["breaks"] and not stats["replayed"]


@pytest.mark.usefixtures("verified")
def test_compiled_code_answers_calls_with_other_numbers():
    """And not torch's own operations in its place, which a log runs where it does not."""
    fast = compiled(Annealed(), "native")
    with torch.no_grad():
        for number in range(6):
            fast(torch.randn(2, 3), 0.1 * number + 1, power=number)
    latest = weft.stats(callable_of(fast).face._programs[0].compiled)
    assert latest["hits"] >= 4 and latest["misses"] <= 1 and latest["graphs"] == 1


@both
@pytest.mark.parametrize("first", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.usefixtures("verified")
def test_numbers_as_left_operands_of_tensors(backend, first):
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights, self.seen, self.scale = {"a": 1.0}, [], 1.0

        def forward(self, x):
            self.seen.append("call")
            return self.weights["a"] * x, self.scale - x, self.scale < x

    model, x = Weighted(), torch.linspace(-3, 3, 7)
    fast = compiled(model, backend)
    with torch.no_grad():
        for number in range(8):
            model.weights["a"], model.scale = number + first, 0.5 * number + first
            expected = (model.weights["a"] * x, model.scale - x, model.scale < x)
            torch.testing.assert_close(fast(x), expected)
    stats = weft.stats(fast)
    assert stats["captures"] == 2 and stats["hits"] == 6
    assert not stats["breaks"] and not stats["replayed"]


@both
@pytest.mark.parametrize("default", [False, True])
def test_calls_that_cannot_be_traced_take_numbers(backend, default):
    """The default way of capture, in which tracing comes first."""
    model, twin = Annealed(), Annealed()
    twin.load_state_dict(model.state_dict())
    fast = weft.compile(model) if default else compiled(model, backend)
    for number in range(10):
        x = torch.randn(2, 3)
        same(fast, twin, x, 0.1 * number + 1)
    assert model.seen == twin.seen
    assert weft.stats(fast)["graphs"] == 2 and weft.stats(fast)["hits"] >= 6


@both
def test_numbers_of_other_types_and_values(backend):
    model, twin = Annealed(), Annealed()
    twin.load_state_dict(model.state_dict())
    fast = compiled(model, backend)
    tensor = torch.ones(())
    for t in (
        1,
        2,
        2.5,
        3.5,
        True,
        7,
        float("inf"),
        float("nan"),
        -0.0,
        2**40,
        tensor,
        "a",
        4,
        1e300,
    ):
        for _ in range(2):
            x = torch.randn(2, 3)
            try:
                expected = twin(x, t)
            except (ValueError, TypeError, OverflowError) as error:
                with pytest.raises(type(error)):
                    fast(x, t)
            else:
                torch.testing.assert_close(fast(x, t), expected, equal_nan=True)
    assert [*map(str, model.seen)] == [*map(str, twin.seen)] and str(model.last) == str(twin.last)


def test_what_looks_at_a_number_makes_it_a_condition():
    calls = []

    def f(x, n):
        calls.append(n)
        if n % 2:  # a comparison
            return x * n
        return (x.repeat(n) * 2).sum() + len(range(n)), f"{n}"  # sizes and texts

    fast = compiled(f, "native")
    for n in (1, 3, 5, 7, 2, 4, 6, 1, 2, 3, 4, 9, 11):
        x = torch.randn(3)
        found = fast(x, n)
        calls.pop()
        expected = f(x, n)
        if isinstance(found, tuple):
            assert found[1:] == expected[1:]
            found, expected = found[0], expected[0]
        torch.testing.assert_close(found, expected)
    assert not weft.stats(fast)["breaks"]


@both
def test_the_caller_keeps_its_own_numbers(backend):
    known = 12345678

    def f(x, n, box):
        box.append(n)
        return x * n, n is known

    fast, boxes = compiled(f, backend), [[] for _ in range(4)]
    for n, box in zip((2, 3, known, known), boxes):
        _, is_known = fast(torch.ones(2), n, box)
        assert box == [n] and is_known is (n is known)


def test_a_backend_that_may_make_constants_takes_no_numbers():
    def f(x, n):
        box.append(n)
        return x * n

    box, given = [], []

    def backend(module, inputs):
        given.append([type(each) for each in inputs])
        return module.forward

    fast = weft.compile(f, capture="observe", backend=backend)
    for n in (2.0, 3.0, 4.0):
        assert torch.equal(fast(torch.ones(2), n), torch.full((2,), n))
    assert given == [[torch.Tensor]]
    assert any("takes a number that changes" in each for each in weft.stats(fast)["replayed"])


@pytest.mark.parametrize("count", [1, 12])
def test_compiled_code_takes_tensors_ahead_of_numbers(count):
    def f(a, b, c, d, *more):
        seen.append(a)
        both, apart = a + c, a - c
        return [b * a + d * c, *(each * both for each in more), b * apart], a * c

    seen, fast = [], None
    fast = compiled(f, "native")
    for step in range(6):
        a, c = 0.5 + step, 3 - step
        more = [torch.randn(3) for _ in range(count)]
        b, d = torch.randn(3), torch.randn(3)
        torch.testing.assert_close(fast(a, b, c, d, *more), f(a, b, c, d, *more))
    assert weft.stats(fast)["hits"] >= 4 and not weft.stats(fast)["replayed"]


@dataclasses.dataclass
class Options:
    scale: float
    count: int


class Slots:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


seen = []


def entry(x, options):
    seen.append(options["lr"])
    return x * options["lr"] + options["lr"] ** 2


def attribute(x, options):
    seen.append(options.scale)
    return x * options.scale + options.count


def item(x, numbers):
    seen.append(numbers[-1])
    return x * numbers[0] - numbers[-1]


def slot(x, options):
    seen.append(options.scale)
    return x * options.scale


def nested(x, options):
    seen.append(0)
    return x * options["a"]["b"][0]


def changed(x, options):
    seen.append(0)
    options["lr"] = options["lr"] * 0.5
    return x * options["lr"]


WITHIN = {
    entry: lambda i: {"lr": 0.1 * i},
    attribute: lambda i: Options(0.1 * i, i),
    item: lambda i: [i, 0.5 * i],
    slot: lambda i: Slots(0.3 * i),
    nested: lambda i: {"a": {"b": [i, 1]}},
    changed: lambda i: {"lr": 0.1 * i},
}


@both
@pytest.mark.parametrize("program", WITHIN, ids=lambda each: each.__name__)
def test_numbers_that_arguments_hold(program, backend):
    fast = compiled(program, backend)
    for number in range(1, 9):
        x, given = torch.randn(3), WITHIN[program](number)
        others = copy.deepcopy(given)
        found, told = fast(x, given), seen.copy()
        seen.clear()
        torch.testing.assert_close(found, program(x, others))
        assert told == seen
        if not isinstance(given, Slots):
            assert given == others
        seen.clear()
    stats = weft.stats(fast)
    assert stats["captures"] == 2 and stats["hits"] == 6
    assert not stats["breaks"] and not stats["replayed"]


def test_a_number_by_a_name_beyond_ascii():
    def f(x, **options):
        seen.append(0)
        return x * options["größe"]

    fast = compiled(f, "native")
    for number in range(6):
        x = torch.randn(3)
        assert torch.equal(fast(x, **{"größe": 0.5 * number}), x * (0.5 * number))
    assert weft.stats(fast)["captures"] == 2
