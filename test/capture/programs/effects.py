# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call leaves behind: writes to tensors, attributes, items, globals, cells, and output."""

import logging
import sys
import types
import warnings

import torch
import torch.nn.functional as F
from torch import nn, randn

from capture.corpus import Case, call, program

logger = logging.getLogger("capture.corpus")
COUNT = 0
SEEN = []


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


@program
def attribute_written():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = None

        def forward(self, x):
            self.last = x * 2
            return self.last + 1

    return Case(Keeps(), three)


@program
def attribute_counted():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    return Case(Counts(), three)


@program
def attribute_set_once():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = None

        def forward(self, x):
            if self.table is None:
                self.table = torch.arange(3.0)
            return x + self.table

    return Case(Lazy(), three)


@program
def attribute_set_and_put_back():
    class Scoped(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def forward(self, x):
            old, self.scale = self.scale, 5.0
            y = x * self.scale
            self.scale = old
            return y + self.scale

    return Case(Scoped(), three)


@program
def attribute_deleted():
    class Deletes(nn.Module):
        def __init__(self):
            super().__init__()
            self.scratch = 1.0

        def forward(self, x):
            if hasattr(self, "scratch"):
                del self.scratch
                return x * 2
            return x * 3

    return Case(Deletes(), three)


@program
def attribute_of_an_argument_set():
    def f(x):
        x.features = x * 2
        return x + 1

    return Case(f, three)


@program
def attribute_of_an_object_set():
    log = types.SimpleNamespace(calls=0)

    def f(x):
        log.calls += 1
        return x * 2

    return Case(f, three)


@program
def class_attribute_written():
    class Counted:
        calls = 0

    def f(x):
        Counted.calls += 1
        return x * Counted.calls

    return Case(f, three)


@program
def list_appended():
    log = []

    def f(x):
        log.append(x.shape[0])
        return x * 2

    return Case(f, three)


@program
def list_argument_filled():
    def f(x, cache):
        cache.append(x * 2)
        return torch.stack(cache).sum(0)

    cache = []
    return Case(f, lambda: call(randn(3), cache))


@program
def dict_argument_filled():
    def f(features):
        features["mean"] = features["tokens"].mean(0)
        return features

    return Case(f, lambda: call({"tokens": randn(2, 3)}))


@program
def dict_memo():
    memo = {}

    def f(x):
        if x.shape not in memo:
            memo[x.shape] = torch.arange(x.shape[0], dtype=x.dtype)
        return x + memo[x.shape]

    return Case(f, three)


@program
def set_filled():
    seen = set()

    def f(x):
        seen.add(x.shape[0])
        return x * len(seen)

    return Case(f, three)


@program
def global_written():
    def f(x):
        global COUNT
        COUNT += 1
        return x * COUNT

    return Case(f, three)


@program
def global_list_appended():
    def f(x):
        SEEN.append(1)
        return x + len(SEEN)

    return Case(f, three)


@program
def cell_written():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return x * count

    return Case(f, three)


@program
def default_written():
    def f(x, log=[]):  # noqa: B006
        log.append(1)
        return x * len(log)

    return Case(f, three)


@program
def function_attribute_written():
    def f(x):
        f.calls = getattr(f, "calls", 0) + 1
        return x * f.calls

    return Case(f, three)


@program
def weight_rebound():
    class Rebinds(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x):
            self.weight = nn.Parameter(self.weight.detach() * 2)
            return x * self.weight

    return Case(Rebinds(), three)


@program
def prints():
    def f(x):
        print("shape", tuple(x.shape))
        return x * 2

    return Case(f, three)


@program
def writes_to_the_stream():
    def f(x):
        sys.stdout.write("called\n")
        return x * 2

    return Case(f, three)


@program
def prints_values():
    def f(x):
        print(f"{float(x.sum()):.2f}", x)
        return x * 2

    return Case(f, three)


@program
def logs():
    def f(x):
        logger.warning("shape %s", tuple(x.shape))
        logger.debug("not shown")
        return x * 2

    return Case(f, three)


@program
def warns():
    def f(x):
        warnings.warn("an old way", UserWarning, stacklevel=1)
        return x * 2

    return Case(f, three)


@program
def requires_grad_set():
    def f(x):
        return (x * 2).requires_grad_()

    return Case(f, three)


@program
def resized():
    def f(x):
        return x.clone().resize_(min(2, x.numel())), x.unsqueeze_(0)

    return Case(f, three)


@program
def set_of_a_storage():
    def f(x, y):
        y.set_(x)
        return y + 1

    return Case(f, lambda: call(randn(3), randn(3)))


@program
def swapped_in_place():
    def f(x):
        x[0], x[1] = x[1].clone(), x[0].clone()
        return x.relu_()

    return Case(f, three)


@program
def activation_in_place():
    return Case(lambda x: F.relu(x, inplace=True) + F.silu(x.clone(), inplace=True), three)


@program
def batch_of_writes():
    def f(xs):
        torch._foreach_mul_(xs, 2.0)
        return xs[0] + xs[1]

    return Case(f, lambda: call([randn(3), randn(3)]))


@program
def object_finalized():
    log = []

    class Temporary:
        def __del__(self):
            log.append(1)

    def f(x):
        Temporary()
        return x * len(log)

    return Case(f, three)


@program
def attribute_counted_and_used():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.decay = 0, 0.9

        def forward(self, x):
            self.calls += 1
            return x * min(self.decay, (1 + self.calls) / (10 + self.calls)) - 0.5**self.calls

    return Case(Model(), three)


@program
def attributes_made_by_the_first_call():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = self.spread = None

        def forward(self, x):
            if self.spread is None:
                self.mean, self.spread = x.mean(), x.std()
            else:
                self.mean = 0.9 * self.mean + 0.1 * x.mean()
                self.spread = 0.9 * self.spread + 0.1 * x.std()
            return (x - self.mean) / self.spread

    return Case(Model(), three)


@program
def prints_a_tensor():
    def f(x):
        y = x * 2
        print("y", y)
        return y.add_(1)

    return Case(f, three)
