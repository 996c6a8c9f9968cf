# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: properties and results that are kept, profiles, NumPy's generators, and
whole training steps."""

import dataclasses
import functools
import json
import re
import warnings

import numpy
import pytest
import torch
from observing import agree, answers, compiled, is_without_breaks, values, whole
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Lazy:
    def __init__(self, scale):
        self.scale = scale

    @functools.cached_property
    def table(self):
        return torch.full((3,), self.scale)


def test_a_property_is_kept_by_the_call_that_asks_first():
    lazy = Lazy(2.0)
    fast = weft.compile(
        lambda x: x * lazy.table, capture="observe", backend="eager", fullgraph=True
    )
    assert torch.equal(fast(values()), values() * 2)
    kept = lazy.table
    assert torch.equal(fast(values()), values() * 2) and lazy.table is kept
    del lazy.table
    lazy.scale = 3.0
    assert torch.equal(fast(values()), values() * 3) and torch.equal(lazy.table, kept * 1.5)
    given = compiled(lambda each, x: x * each.table)
    for number in range(4):
        each = Lazy(float(number))
        assert torch.equal(given(each, values()), values() * number)
        assert torch.equal(vars(each)["table"], torch.full((3,), float(number)))


def test_a_call_that_fills_a_cache_is_followed_by_a_program():
    """It is no failure, even where the user wants a program or an error."""

    @functools.lru_cache(maxsize=1)
    def table(size):
        return torch.ones(size).cumsum(0)

    def f(x):
        return x * table(x.shape[0])

    with warnings.catch_warnings():
        warnings.simplefilter("error", weft.errors.WeftWarning)
        fast = weft.compile(f, capture="observe", backend="eager", fullgraph=True)
        for size in (3, 3, 3, 4, 4, 4):
            assert torch.equal(fast(values(size)), values(size) * values(size))
    stats = weft.stats(fast)
    assert stats["graphs"] == 2 and stats["hits"] == 2 and not stats["breaks"]
    failing = compiled(f)
    for number in range(40):  # each call puts out what the one before has put in
        assert torch.equal(failing(values(3 + number % 2)), f(values(3 + number % 2)))
    assert "fills the cache" in weft.stats(failing)["breaks"][0]


def test_ranges_of_profiles_are_left_out():
    def f(x):
        with torch.profiler.record_function("part"):
            return x.sin() * 2

    fast = compiled(f)
    for _ in range(3):
        agree(fast, f, values())
    assert whole(fast)


def test_generators_of_numpy():
    class State:
        def __init__(self):
            self.new, self.old = numpy.random.default_rng(3), numpy.random.RandomState(3)

    def draws(state, x):
        own = numpy.random.default_rng(0)
        y = x * float(state.new.uniform(1, 2)) + state.old.rand()
        return y + torch.from_numpy(state.new.standard_normal(3)).float(), own.permutation(3)

    def leaves_half_way(state, x):
        y = x * state.new.random()
        return y if x.sum() < 8 else y - state.new.random()

    for function in (draws, leaves_half_way):
        own, twin = State(), State()
        fast = compiled(functools.partial(function, own))
        for number in range(6):
            if number == 3:  # from outside
                own.new.random(), twin.new.random()
            x = values() + (2 if number == 4 else 0)
            assert str(fast(x)) == str(function(twin, x)), number
            assert str(own.new.bit_generator.state) == str(twin.new.bit_generator.state), number
            assert str(own.old.get_state()) == str(twin.old.get_state()), number
        assert answers(fast)

    def writes(state, x):
        kept = numpy.zeros(3)
        state.new.standard_normal(3, numpy.float64, kept)
        return x + torch.from_numpy(kept)

    own, twin = State(), State()
    fast = compiled(functools.partial(writes, own))
    assert all(torch.equal(fast(values()), writes(twin, values())) for _ in range(3))
    assert not weft.stats(fast)["graphs"]


def test_functions_of_numpy_that_read_arrays():
    def f(x):
        a = x.numpy()
        counts, edges = numpy.histogram(a, bins=2)
        at = numpy.interp(2.5, a, a * 2)
        return x * float(counts[0]) + float(at), edges, a.dtype.name, numpy.einsum("i,i->", a, a)

    fast = compiled(f)
    for factor in (1, 1, 3, 1):
        agree(fast, f, values(4) * factor)
    assert answers(fast)


@dataclasses.dataclass
class Inner:
    size: int = 2


@dataclasses.dataclass
class Outer:
    inner: Inner
    more: object = None


def test_dataclasses_are_told_as_they_are():
    outer = Outer(Inner())
    fast = compiled(lambda x: (x * 2, repr(outer), f"{outer.inner}"))
    for size in (2, 2, 5):
        outer.inner.size = size
        assert fast(values())[1:] == (repr(outer), f"{outer.inner}")
    assert answers(fast)
    outer.more = outer  # which it tells by three dots
    assert fast(values())[1] == repr(outer)


def test_texts_that_functions_of_the_library_make():
    config = {"a": [1, {"scale": 2.5}]}

    def f(x, text):
        read = json.loads(json.dumps(config, sort_keys=True))
        read["a"][1]["scale"] += 1
        told = re.sub(r"\d", lambda match: str(int(match.group()) + read["a"][0]), text)
        told += re.sub("([AB])", r"<\1>", text, flags=re.I)
        match = re.match(r"(\w)(\d)", text)
        return x * read["a"][1]["scale"], told, match[1], match.lastindex, read

    fast = compiled(f)
    for scale, text in ((2.5, "a1"), (2.5, "a1"), (4.0, "a1"), (4.0, "b2")):
        config["a"][1]["scale"] = scale
        agree(fast, f, values(), text)
    assert is_without_breaks(fast) and answers(fast)

    class Encoder(json.JSONEncoder):
        def encode(self, _):
            return str(config["a"][1]["scale"])

    own = compiled(lambda x: (x, json.dumps(1, cls=Encoder)))
    for scale in (1.0, 2.0):
        config["a"][1]["scale"] = scale
        assert own(values())[1] == str(scale)


@pytest.mark.parametrize("clips", [False, True])
def test_whole_training_steps_name_what_compiles_them(clips):
    """They run by PyTorch; the model within has a program."""

    def state():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    own, twin = state(), state()
    fast = compiled(functools.partial(step, *own))
    for number in range(10):
        x = torch.ones(2, 3) * number
        assert torch.equal(fast(x), step(*twin, x))
    for one, other in zip(own[0].parameters(), twin[0].parameters(), strict=True):
        assert torch.equal(one, other)
    stats = weft.stats(fast)
    assert all("weft.compile_step" in each for each in stats["breaks"])
    assert stats["parts"]["Sequential"] > 2
