# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers of torch, Python and NumPy."""

import random

import numpy
import torch
import torch.nn.functional as F
from torch import nn, randn

from capture.corpus import Case, call, program


def three():
    return call(randn(3))


@program
def torch_random():
    return Case(lambda x: x + torch.rand(3) + torch.randn_like(x), three)


@program
def torch_integers():
    return Case(lambda x: x + torch.randint(0, 5, (3,)) + torch.randperm(3), three)


@program
def torch_random_value_read():
    return Case(lambda x: x * 2 if torch.rand(()).item() > 0.5 else x * 3, three)


@program
def dropout():
    return Case(lambda x: F.dropout(x, 0.5, training=True) + 1, three)


@program
def dropout_layers():
    return Case(nn.Sequential(nn.Dropout(0.3), nn.Linear(3, 3), nn.Dropout(0.3)), three)


@program
def bernoulli_and_multinomial():
    def f(x):
        return torch.bernoulli(x.sigmoid()), torch.multinomial(x.softmax(0), 2)

    return Case(f, three)


@program
def random_in_place():
    return Case(lambda x: x.clone().uniform_() + x.clone().normal_(), three)


@program
def own_generator():
    generator = torch.Generator()
    generator.manual_seed(3)
    return Case(lambda x: x + torch.rand(3, generator=generator), three)


@program
def seed_set():
    def f(x):
        torch.manual_seed(5)
        return x + torch.rand(3)

    return Case(f, three)


@program
def forked_generator():
    def f(x):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            y = torch.rand(3)
        return x + y

    return Case(f, three)


@program
def python_random():
    return Case(lambda x: x * random.random(), three)


@program
def python_choice():
    options = [2.0, 3.0]
    return Case(lambda x: x * random.choice(options), three)


@program
def python_shuffle():
    def f(x):
        order = [0, 1, 2]
        random.shuffle(order)
        return x[order]

    return Case(f, three)


@program
def own_python_random():
    source = random.Random(3)
    return Case(lambda x: x * source.uniform(1, 2), three)


@program
def numpy_random():
    return Case(lambda x: x * float(numpy.random.rand()), three)


@program
def own_numpy_random():
    source = numpy.random.default_rng(3)
    return Case(lambda x: x * source.random(), three)


@program
def layer_drop():
    class Drops(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
            self.p = 0.5

        def forward(self, x):
            for layer in self.layers:
                if self.training and random.random() < self.p:
                    continue
                x = layer(x)
            return x

    return Case(Drops(), three)


@program
def draws_before_it_raises():
    def f(x):
        torch.rand(3)
        random.random()
        raise ValueError("drawn")

    return Case(f, three)


@program
def generators_of_numpy():
    generator, older = numpy.random.default_rng(3), numpy.random.RandomState(4)

    def f(x):
        own = numpy.random.default_rng(0)
        y = x * float(generator.uniform(1, 2)) + torch.from_numpy(own.standard_normal(3)).float()
        return y + older.rand(), generator.permutation(3), own.random()

    def draws():
        before = generator.bit_generator.state
        generator.random()
        return lambda: setattr(generator.bit_generator, "state", before)

    return Case(f, three, {"draws": draws})
