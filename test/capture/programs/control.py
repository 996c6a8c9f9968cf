# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, branches, generators, decorators, context managers and exceptions."""

import contextlib
import functools

import torch
from torch import nn, randn

from capture.corpus import Case, call, program


def three():
    return call(randn(3))


@program
def counted_loop():
    rounds = 3

    def f(x):
        for _ in range(rounds):
            x = x * 1.5
        return x

    return Case(f, three)


@program
def while_loop():
    limit = 3

    def f(x):
        k = 0
        while True:
            k += 1
            if k == 2:
                continue
            x = x + k
            if k > limit:
                break
        else:
            x = x * 100
        return x

    return Case(f, three)


@program
def zip_and_enumerate():
    weights, biases = [1.0, 2.0], [3.0, 4.0]

    def f(x):
        for number, (w, b) in enumerate(zip(weights, biases)):
            x = x * w + b + number
        return x

    return Case(f, three)


@program
def comprehensions():
    values = [1.0, 2.0, 3.0]

    def f(x):
        scaled = [x * v for v in values if v > 1.0]
        table = {k: v for k, v in enumerate(scaled)}
        return table, sum(len({v}) for v in values)

    return Case(f, three)


@program
def generator():
    limit = 3

    def parts(x):
        for k in range(limit):
            received = yield x * k
            assert received is None
        return x

    def f(x):
        return sum(parts(x))

    return Case(f, three)


@program
def generator_with_send():
    def accumulate():
        total = 0
        while True:
            value = yield total
            if value is None:
                return
            total = total + value

    def f(x):
        running = accumulate()
        next(running)
        running.send(x)
        result = running.send(x * 2)
        running.close()
        return result

    return Case(f, three)


@program
def yield_from():
    def inner(x):
        yield x
        return x * 10

    def outer(x):
        result = yield from inner(x)
        yield result

    return Case(lambda x: torch.stack(list(outer(x))), three)


@program
def generator_kept():
    def numbers():
        k = 0
        while True:
            yield k
            k += 1

    ticks = numbers()
    return Case(lambda x: x + next(ticks), three)


@program
def generator_result():
    def f(x):
        return (x * k for k in range(2))

    return Case(lambda x: list(f(x)), three)


@program
def decorator():
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * wrapper.factor

        wrapper.factor = 2.0
        return wrapper

    @doubled
    def f(x):
        return x + 1

    return Case(f, three)


@program
def decorator_with_state():
    def counted(function):
        calls = []

        def wrapper(x):
            calls.append(1)
            return function(x) * len(calls)

        return wrapper

    return Case(counted(lambda x: x + 1), three)


@program
def context_manager_class():
    class Scope:
        depth = 0

        def __enter__(self):
            Scope.depth += 1
            return Scope.depth

        def __exit__(self, *error):
            Scope.depth -= 1

    def f(x):
        with Scope() as depth, Scope() as deeper:
            return x * depth + deeper

    return Case(f, three)


@program
def context_manager_generator():
    factor = 2.0

    @contextlib.contextmanager
    def scaled(x):
        yield x * factor

    def f(x):
        with scaled(x) as y:
            return y + 1

    return Case(f, three)


@program
def context_manager_suppresses():
    def f(x):
        with contextlib.suppress(ValueError):
            x = x * 2
            raise ValueError("caught")
        return x

    return Case(f, three)


@program
def exit_stack():
    def f(x):
        with contextlib.ExitStack() as stack:
            done = []
            stack.callback(done.append, 1)
            stack.enter_context(torch.no_grad())
            y = x * 2
        return y + len(done)

    return Case(f, three)


@program
def try_except_else_finally():
    fails = False

    def f(x):
        log = []
        try:
            if fails:
                raise KeyError("fails")
            y = x * 2
        except KeyError as error:
            y = x * len(error.args)
        else:
            y = y + 1
        finally:
            log.append("done")
        return y, log

    return Case(f, three)


@program
def raises():
    limit = 5.0

    def f(x):
        if x.shape[0] < limit:
            raise ValueError(f"expected {limit} entries, found {x.shape[0]}")
        return x * 2

    return Case(f, three)


@program
def raises_behind_a_write():
    log = []

    def f(x):
        log.append(len(log))
        x.add_(1)
        raise RuntimeError("too late")

    return Case(f, three)


@program
def raises_from():
    def f(x):
        try:
            return {}["missing"]
        except KeyError as error:
            raise LookupError("nothing there") from error

    return Case(f, three)


@program
def error_of_torch():
    other = torch.ones(3)
    return Case(lambda x: x @ other.reshape(1, 3) if other.dim() > 1 else x + other, three)


@program
def error_of_torch_caught():
    other = torch.ones(2)

    def f(x):
        try:
            return x + other
        except RuntimeError:
            return x * 2

    return Case(f, three)


@program
def assertion():
    least = 2

    def f(x):
        assert x.shape[0] > least, "too few"
        return x * 2

    return Case(f, three)


@program
def exception_with_attributes():
    class Stop(Exception):
        def __init__(self, value):
            super().__init__("stopped")
            self.value = value

    def inner(x):
        raise Stop(x * 2)

    def f(x):
        try:
            inner(x)
        except Stop as stop:
            return stop.value + 1

    return Case(f, three)


@program
def early_return():
    def f(x, flag=True):
        if not flag:
            return None
        for k in range(3):
            if k == 1:
                return x * k
        return x

    return Case(f, three)


@program
def recursion():
    depth = 3

    def descend(x, level):
        return x if level == 0 else descend(x * 2, level - 1)

    return Case(lambda x: descend(x, depth), three)


@program
def match_statement():
    command = ("scale", 2.0)

    def f(x):
        match command:
            case ("scale", factor):
                return x * factor
            case {"bias": bias}:
                return x + bias
            case [first, *_] if first == "negate":
                return -x
            case _:
                return x

    return Case(f, three)


@program
def walrus_and_conditional():
    values = [1.0, 2.0]
    return Case(lambda x: x * n if (n := len(values)) > 1 else x + n, three)


@program
def branch_on_a_sum():
    def f(x):
        return x * 2 if x.sum() > 0 else x * 3

    return Case(f, lambda: call(randn(3).abs()))


@program
def branch_on_item():
    def f(x):
        return x * x[0].item()

    return Case(f, three)


@program
def loop_to_an_int_of_a_tensor():
    def f(x, n):
        for _ in range(int(n)):
            x = x + 1
        return x

    return Case(f, lambda: call(randn(3), torch.tensor(2)))


@program
def nonzero():
    return Case(lambda x: x[x > 0], lambda: call(torch.tensor([1.0, -1.0, 2.0])))


@program
def nonzero_as_tuple():
    def f(x):
        (rows,) = torch.nonzero(x > 0, as_tuple=True)
        return rows, x.nonzero().shape[0]

    return Case(f, three)


@program
def float_of_a_weight():
    scale = torch.tensor(2.0)
    return Case(lambda x: x * float(scale) + scale.item(), three)


@program
def list_of_a_weight():
    sizes = torch.tensor([1, 2])
    return Case(lambda x: x * sum(sizes.tolist()), three)


@program
def branch_on_a_weight():
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("open", torch.tensor(True))

        def forward(self, x):
            return x * 2 if self.open else x * 3

    return Case(Gate(), three)


@program
def torch_cond():
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))

    return Case(f, three)


@program
def assert_on_values():
    def f(x):
        assert (x < 100).all(), "too large"
        return x * 2

    return Case(f, three)


@program
def iterate_a_tensor():
    def f(x):
        return sum(row * k for k, row in enumerate(x)), len(x), list(x.unbind())

    return Case(f, lambda: call(randn(2, 3)))


@program
def tensor_in_a_list():
    marker = torch.ones(1)
    others = [marker]

    def f(x):
        return x * 2 if any(each is marker for each in others) else x * 3

    return Case(f, three)


@program
def equal_to_a_weight():
    weight = torch.ones(3)
    return Case(lambda x: x * 2 if torch.equal(weight, torch.ones(3)) else x * 3, three)
