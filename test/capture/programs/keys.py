# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dicts and sets whose keys are no plain values, and counters and histories that calls fill."""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import torch
from torch import nn, randn

from capture.corpus import Case, call, program


@dataclass(frozen=True)
class Frozen:
    number: int
    text: str = "x"


class Named(NamedTuple):
    number: int
    text: str = "x"


class Mode(Enum):
    TRAIN = 1
    TEST = 2


def three():
    return call(randn(3))


@program
def frozen_keys():
    table = {Frozen(1): 2.0, Frozen(2): 3.0}
    return Case(lambda x: x * table[Frozen(1)] + (Frozen(3) in table), three)


@program
def named_keys():
    table = {Named(1): 2.0, Named(2): 3.0}
    return Case(lambda x: x * table[Named(1)] + table.get(Named(3), 1.0), three)


@program
def keys_of_an_iteration():
    table = {Frozen(1): 2.0, Named(2): 3.0}
    return Case(lambda x: [(x * value, key.number) for key, value in table.items()], three)


@program
def state_by_parameter():
    layer = nn.Linear(3, 3)
    state = {each: {"steps": 0, "factor": 2.0} for each in layer.parameters()}

    def step(x):
        for each in layer.parameters():
            state[each]["steps"] += 1
            x = x * state[each]["factor"] + each.detach().sum()
        return x

    return Case(step, three, state=(state,))


@program
def modules_in_a_set():
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    skipped = {layers[1]}

    def step(x):
        for each in layers:
            x = x if each in skipped else each(x)
        return x

    return Case(step, three)


@program
def counted_by_members():
    counts = defaultdict(int)

    def step(x):
        counts[Mode.TRAIN] += 1
        counts["sizes"] += len(x)
        return x + 1

    return Case(step, three, state=(counts,))


@program
def counted_by_keys():
    counts = Counter({Named(1): 2})

    def step(x):
        counts[Named(1)] += 1
        counts[Named(2)] += 1
        return x * 2

    return Case(step, three, state=(counts,))


@program
def mean_of_losses():
    class Losses(nn.Module):
        def __init__(self):
            super().__init__()
            self.losses = [1.0]

        def forward(self, x):
            self.losses.append(x.sum().item())
            return x * 2, sum(self.losses) / len(self.losses)

    return Case(Losses(), three)


@program
def window_of_losses():
    losses = deque([1.0, 2.0], maxlen=2)

    def step(x):
        losses.append(x.sum().item())
        return x * len(losses), max(losses)

    return Case(step, three, state=(losses,))


@program
def entries_by_default():
    histories = defaultdict(list)

    def step(x):
        histories["loss"].append(x.sum().item())
        return torch.relu(x)

    return Case(step, three, state=(histories,))
