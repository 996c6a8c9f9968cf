# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes to tensors, and results that are arguments, weights and views."""

import torch
from torch import nn, randn

from capture.corpus import Case, call, program


def three():
    return call(randn(3))


@program
def in_place_on_an_argument():
    return Case(lambda x: x.add_(1).mul_(2), three)


@program
def in_place_on_a_view_of_an_argument():
    def f(x):
        x[0].fill_(5.0)
        x[:, 1] = 7.0
        return x * 2

    return Case(f, lambda: call(randn(2, 3)))


@program
def in_place_on_an_intermediate():
    def f(x):
        y = x * 2
        y += 1
        y[0] = 3.0
        y[1:].mul_(2)
        return y

    return Case(f, three)


@program
def in_place_on_a_buffer():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("count", torch.tensor(0))

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.count += 1
            return x - self.mean

    return Case(Running(), lambda: call(randn(2, 3)))


@program
def in_place_on_a_closure_tensor():
    total = torch.zeros(3)

    def f(x):
        total.add_(x)
        return total * 2

    return Case(f, three)


@program
def buffer_rebound():
    class Rebinds(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(3))

        def forward(self, x):
            self.state = self.state + x
            return self.state * 2

    return Case(Rebinds(), three)


@program
def data_assigned():
    class Data(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(3))

        def forward(self, x):
            self.state.data = self.state.data + 1
            return x * self.state

    return Case(Data(), three)


@program
def data_written():
    def f(x):
        x.data.mul_(2)
        return x + 1

    return Case(f, three)


@program
def data_of_a_weight_read():
    weight = nn.Parameter(torch.ones(3))
    return Case(lambda x: x * weight.data + weight.detach(), three)


@program
def out_argument():
    def f(x, out):
        torch.mul(x, 2, out=out)
        return out

    return Case(f, lambda: call(randn(3), torch.zeros(3)))


@program
def out_of_another_size():
    def f(x):
        out = torch.empty(0)
        torch.add(x, 1, out=out)
        return out

    return Case(f, three)


@program
def set_item_with_a_mask():
    def f(x):
        x = x.clone()
        x[x < 0] = 0.0
        return x

    return Case(f, three)


@program
def index_put():
    index = torch.tensor([0, 2])

    def f(x):
        x.index_add_(0, index, torch.ones(2))
        return x.index_fill(0, index, 5.0)

    return Case(f, three)


@program
def returns_its_argument():
    return Case(lambda x: (x, x.view(-1), x[0]), lambda: call(randn(2, 3)))


@program
def returns_a_weight():
    weight = torch.ones(3)
    return Case(lambda x: (weight, weight[1:], x * weight), three)


@program
def returns_the_same_tensor_twice():
    def f(x):
        y = x * 2
        return y, y, [y, y[1:]]

    return Case(f, three)


@program
def returns_a_list_of_the_closure():
    kept = [1.0]
    return Case(lambda x: (kept, x * kept[0]), three)


@program
def returns_its_argument_list():
    def f(xs):
        return xs, xs[0] + 1

    return Case(f, lambda: call([randn(3)]))


@program
def aliased_arguments():
    def f(x, y):
        x.add_(1)
        return x * y

    def arguments():
        base = randn(4)
        return call(base[:3], base[1:])

    return Case(f, arguments)


@program
def overlapping_argument():
    return Case(lambda x: x * 2 + 1, lambda: call(randn(1, 3).expand(2, 3)))


@program
def writes_one_and_returns_the_other():
    def f(x, y):
        y.copy_(x)
        return y, x + 1

    return Case(f, lambda: call(randn(3), randn(3)))


@program
def views_of_every_kind():
    def f(x):
        return (
            x.T,
            x.unsqueeze(0),
            x.expand(2, 2, 3),
            x.as_strided((2,), (1,)),
            x.diagonal(),
            x.split(1)[1],
            x.permute(1, 0)[1:],
            x.real,
        )

    return Case(f, lambda: call(randn(2, 3)))
