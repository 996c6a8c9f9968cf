# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call leaves behind: attributes, items, globals, cells, and output."""

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


@program
def entries_by_texts_that_count():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.sums = 0, {}

        def forward(self, x):
            self.calls += 1
            self.sums[f"call{self.calls}"] = x.sum()
            return x * 2

    return Case(Model(), three)
