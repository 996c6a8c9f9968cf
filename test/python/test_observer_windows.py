# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of lists of numbers to which each call appends: a call asks for their sum and the like."""

import pytest
import torch
from observing import beside_eager, captures, is_without_breaks, values
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Losses(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step, self.losses, self.calls = step, [], 0

    def forward(self, x):
        loss = (x * x).mean()
        self.losses.append(loss.item())
        return self.step(self, x)


def world(step):
    def make():
        model = Losses(step)
        arguments = lambda number: (values() * (1 + (number * 7) % 5),)  # noqa: E731
        return model, arguments, lambda: (model.losses, model.calls), model

    return make


def at_once(self, x):
    return x, sum(self.losses[-4:]) / len(self.losses[-4:])


def in_a_variable(self, x):
    last = self.losses[-3:]
    return x * (sum(last) / len(last)), max(last), min(last)


def ahead(self, x):
    return x * sum(self.losses[:-1]) + len(self.losses[1:3])


def of_steps(self, x):
    return x * (sum(self.losses[::2]) + sum(self.losses[-5:-1]))


@pytest.mark.parametrize("step", [at_once, in_a_variable, ahead, of_steps])
@pytest.mark.parametrize("backend", ["eager", "native"])
def test_parts_that_are_only_asked(step, backend):
    fast = beside_eager(world(step), 12, backend=backend)
    assert is_without_breaks(fast) and captures(fast) <= 3


def handed_on(self, x):
    last = self.losses[-3:]
    return x * sum(last) + torch.tensor(last).mean()


def kept(self, x):
    self.last = last = self.losses[-2:]
    return x * sum(last)


def truth_of_it(self, x):
    last = self.losses[-2:-1]
    return x * sum(last) if last else x


def own(items):
    return items[0]


def by_another_function(self, x):
    sum = own if self.calls % 2 else len  # noqa: A001
    self.calls += 1
    return x * sum(self.losses[-2:])


def changed_in_between(self, x):
    last = self.losses[-2:]
    self.losses.append(float(x.sum()))
    self.losses[0] = 7.0
    return x * sum(last) + sum(self.losses[-2:])


def through_locals(self, x):
    last = self.losses[-2:]
    return x * sum(last) + locals()["last"][-1]


def in_a_closure(self, x):
    last = self.losses[-2:]
    return (lambda: x * sum(last) + last[0])()


OTHERS = (
    handed_on,
    kept,
    truth_of_it,
    by_another_function,
    changed_in_between,
    through_locals,
    in_a_closure,
)


@pytest.mark.parametrize("step", OTHERS)
def test_parts_of_which_more_is_read(step):
    beside_eager(world(step), 12)


def test_items_that_others_change():
    def change(number, made):
        losses = made[3].losses
        if number == 4:
            losses[-2:] = [100.0, 200.0]
        elif number == 6:
            losses.clear()
        elif number == 8:
            losses[-1] = torch.tensor(3.0)
        elif number == 9:
            losses[-1] = True
        elif number == 10:
            made[3].losses = [1.0, 2.0, 3.0]

    fast = beside_eager(world(in_a_variable), 14, change)
    assert captures(fast) <= 8
