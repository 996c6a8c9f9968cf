# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seeds that a call sets, and generators of random numbers that it makes or is given."""

import random

import numpy
import pytest
import torch
from observing import compiled, whole

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class State:
    def __init__(self):
        self.generator, self.steps = torch.Generator().manual_seed(3), 0


def seeds(state, x):
    torch.manual_seed(5)
    return x + torch.rand(3)


def seeds_by_its_steps(state, x):
    state.steps += 1
    made = torch.Generator().manual_seed(state.steps)
    return x + torch.rand(3, generator=made), torch.randperm(4, generator=made)


def draws(state, x):
    g = state.generator
    kept = torch.bernoulli(torch.full((3,), 0.5), generator=g)
    noise = torch.empty(3).normal_(generator=g)
    return x * kept + noise, torch.randint(0, 9, (3,), generator=g), torch.rand(1)


def puts_back(state, x):
    before, own = state.generator.get_state(), torch.get_rng_state()
    y = torch.rand(3, generator=state.generator) + torch.rand(3)
    state.generator.set_state(before)
    torch.set_rng_state(own)
    return x + y


def forks(state, x):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        y = torch.rand(3)
    return x + y + torch.rand(1)


def forks_without_devices(state, x):
    with torch.random.fork_rng(devices=[]):
        return x + torch.rand(3)


def asks(state, x):
    state.generator.manual_seed(7)
    return x + state.generator.initial_seed()


def seeds_python(state, x):
    random.seed(state.generator.initial_seed() if x.sum() > 8 else 4)
    return x * random.random() + random.choice([1, 2, 3])


def leaves_half_way(state, x):
    torch.manual_seed(state.generator.initial_seed())
    y = torch.rand(3, generator=state.generator) * 0
    return x + y if x.sum() < 20 else x - torch.rand(3)


def seeds_numpy(state, x):
    numpy.random.seed(int(x[0].item()) if x.sum() > 8 else 4)
    torch.manual_seed(seed=6)
    return x * float(numpy.random.rand()) + torch.rand(3)


@pytest.mark.parametrize(
    "function",
    [
        seeds,
        seeds_numpy,
        seeds_by_its_steps,
        draws,
        puts_back,
        forks,
        forks_without_devices,
        asks,
        seeds_python,
        leaves_half_way,
    ],
)
def test_states_are_those_of_eager_calls(function):
    own, twin = State(), State()
    fast = compiled(lambda x: function(own, x))
    generators = [torch.Generator().manual_seed(1).get_state()] * 2
    arrays = [numpy.random.RandomState(2).get_state()] * 2
    for number in range(7):
        x, results = torch.full((3,), float(number if number < 6 else 9)), []
        for i, call in enumerate((fast, lambda x: function(twin, x))):
            if number == 4:  # from outside
                (own, twin)[i].generator.manual_seed(11)
            torch.set_rng_state(generators[i])
            numpy.random.set_state(arrays[i])
            results.append(call(x))
            arrays[i] = numpy.random.get_state()
            generators[i] = torch.get_rng_state()
        assert str(results[0]) == str(results[1]), number
        assert torch.equal(*generators) and str(arrays[0]) == str(arrays[1]), number
        assert torch.equal(own.generator.get_state(), twin.generator.get_state()), number
    assert whole(fast, hits=2)


def test_native_programs_leave_seeded_calls_to_torch():
    def function(x):
        torch.manual_seed(5)
        return (x + torch.rand(3)) * 2

    fast = weft.compile(function)
    for _ in range(4):
        assert torch.equal(fast(torch.ones(3)), function(torch.ones(3)))
    (reason,) = weft.stats(fast)["replayed"]
    assert "draws from a generator that the call sets" in reason


def test_a_generator_that_each_call_replaces():
    def function(state, x):
        y = x + torch.rand(3, generator=state.generator)
        state.generator = torch.Generator().manual_seed(state.generator.initial_seed() + 1)
        return y

    own, twin = State(), State()
    fast = compiled(lambda x: function(own, x))
    for _ in range(6):
        assert torch.equal(fast(torch.ones(3)), function(twin, torch.ones(3)))
        assert own.generator.initial_seed() == twin.generator.initial_seed()
