# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's standard library: functools, itertools, operator, text, and what hides state."""

import ast
import contextvars
import datetime
import functools
import itertools
import json
import logging
import math
import operator
import os
import queue
import re
import string
import sys
import threading
import time
import weakref

import torch
from torch import randn

from capture.corpus import Case, call, program

logger = logging.getLogger("capture.corpus")
CONTEXT = contextvars.ContextVar("context", default=2.0)
LOCAL = threading.local()
LOCAL.scale = 2.0


@functools.cache
def positions(count):
    return torch.arange(count, dtype=torch.float32)


@functools.singledispatch
def scaled(value, x):
    return x


@scaled.register
def _(value: int, x):
    return x * value


def three():
    return call(randn(3))


@program
def partial():
    def scale(x, factor, bias=0.0):
        return x * factor + bias

    return Case(functools.partial(scale, factor=2.0, bias=1.0), three)


@program
def partial_in_a_closure():
    double = functools.partial(torch.mul, other=2.0)
    return Case(lambda x: double(x) + 1, three)


@program
def partial_method():
    class Ops:
        def scale(self, x, factor):
            return x * factor

        double = functools.partialmethod(scale, factor=2.0)

    ops = Ops()
    return Case(lambda x: ops.double(x), three)


@program
def reduce():
    factors = [1.0, 2.0, 3.0]
    return Case(lambda x: functools.reduce(lambda a, b: a * b, factors, x), three)


@program
def lru_cache():
    def clear():
        positions.cache_clear()
        return lambda: None

    return Case(lambda x: x + positions(x.shape[0]), three, {"clear": clear})


@program
def lru_cache_over_a_global():
    scale = [2.0]

    @functools.lru_cache
    def factor(n):
        return scale[0] * n

    return Case(lambda x: x * factor(2), three, {"clear": lambda: factor.cache_clear() or int})


@program
def cached_property():
    class Lazy:
        def __init__(self):
            self.base = 2.0

        @functools.cached_property
        def value(self):
            return self.base * 3

    lazy = Lazy()
    return Case(lambda x: x * lazy.value, three)


@program
def single_dispatch():
    value = 2
    return Case(lambda x: scaled(value, x), three)


@program
def total_ordering():
    @functools.total_ordering
    class Version:
        def __init__(self, number):
            self.number = number

        def __eq__(self, other):
            return self.number == other.number

        def __lt__(self, other):
            return self.number < other.number

    first, second = Version(1), Version(2)
    return Case(lambda x: x * 2 if first >= second else x * 3, three)


@program
def itertools_chain():
    first, second = [1.0, 2.0], [3.0]

    def f(x):
        for a, b in itertools.product(first, second):
            x = x * a + b
        for a, b in itertools.pairwise(itertools.chain(first, second)):
            x = x + a - b
        return x + sum(itertools.islice(itertools.accumulate(first), 2))

    return Case(f, three)


@program
def itertools_count_kept():
    ticks = itertools.count()
    return Case(lambda x: x + next(ticks), three)


@program
def itertools_cycle_kept():
    signs = itertools.cycle([1.0, -1.0])
    return Case(lambda x: x * next(signs), three)


@program
def itertools_groupby():
    names = ["a", "a", "b"]

    def f(x):
        for name, group in itertools.groupby(names):
            x = x * ord(name) + len(list(group))
        return x

    return Case(f, three)


@program
def operators():
    operation = operator.mul
    getter = operator.itemgetter("a")
    table = {"a": 2.0}
    return Case(lambda x: operation(x, getter(table)) + operator.attrgetter("ndim")(x), three)


@program
def methodcaller():
    method = operator.methodcaller("mul", 3.0)
    return Case(lambda x: method(x), three)


@program
def map_and_filter():
    values = [1.0, -2.0, 3.0]

    def f(x):
        return x * sum(map(abs, filter(lambda v: v > 0, values))) + any(v < 0 for v in values)

    return Case(f, three)


@program
def string_formatting():
    table, prefix, number = {"block_2": 3.0}, "block", 2

    def f(x):
        key = f"{prefix}_{number:d}"
        return x * table[key] * len("{}-{:>4}".format(prefix, number)) + len("%s!" % prefix)  # noqa: UP031, UP032

    return Case(f, three)


@program
def string_methods():
    names = "Conv-Relu,Linear"
    return Case(lambda x: x * len(names.lower().split(",")[0].partition("-")[2]), three)


@program
def string_template():
    template = string.Template("$a$a")
    return Case(lambda x: x * len(template.substitute(a="xy")), three)


@program
def regular_expression():
    pattern, name = re.compile(r"layer(\d+)"), "layer3"
    return Case(lambda x: x * int(pattern.match(name).group(1)), three)


@program
def json_and_ast():
    text = '{"scale": 2.0}'
    return Case(lambda x: x * json.loads(text)["scale"] + ast.literal_eval("1"), three)


@program
def math_functions():
    width = 9.0
    return Case(lambda x: x / math.sqrt(width) + math.floor(2.5) + math.inf * 0.0, three)


@program
def context_variable():
    def change():
        token = CONTEXT.set(5.0)
        return lambda: CONTEXT.reset(token)

    return Case(lambda x: x * CONTEXT.get(), three, {"set it": change})


@program
def thread_local():
    def change():
        LOCAL.scale = 5.0
        return lambda: setattr(LOCAL, "scale", 2.0)

    return Case(lambda x: x * LOCAL.scale, three, {"set it": change})


@program
def environment_variable():
    def change():
        os.environ["WEFT_CORPUS_SCALE"] = "5"
        return lambda: os.environ.pop("WEFT_CORPUS_SCALE")

    def f(x):
        return x * float(os.environ.get("WEFT_CORPUS_SCALE", "2"))

    return Case(f, three, {"set it": change})


@program
def environment_by_getenv():
    name = "WEFT_CORPUS_" + "SCALE"

    def change():
        os.environ["WEFT_CORPUS_SCALE"] = "5"
        return lambda: os.environ.pop("WEFT_CORPUS_SCALE")

    return Case(lambda x: x * float(os.getenv(name, "2")), three, {"set it": change})


@program
def clock():
    def change():
        old, time.time = time.time, lambda: 0.0
        return lambda: setattr(time, "time", old)

    return Case(lambda x: x * (2 if time.time() > 1 else 3), three, {"stop it": change})


@program
def date():
    return Case(lambda x: x * (datetime.date.today().year > 2000), three)


@program
def file_read():
    path = f"/tmp/weft-corpus-{os.getpid()}"
    with open(path, "w") as file:
        file.write("2")

    def f(x):
        with open(path) as file:
            return x * float(file.read())

    def change():
        with open(path, "w") as file:
            file.write("5")

        def undo():
            with open(path, "w") as file:
                file.write("2")

        return undo

    return Case(f, three, {"write it": change})


@program
def file_exists():
    path = "/tmp/weft-corpus-absent"

    def change():
        with open(path, "w"):
            return lambda: os.remove(path)

    return Case(lambda x: x * (2 if os.path.exists(path) else 3), three, {"make it": change})


@program
def weak_reference():
    class Thing:
        scale = 2.0

    things = [Thing()]
    reference = weakref.ref(things[0])

    def drop():
        things.clear()

        def undo():
            things.append(Thing())

        return undo

    def f(x):
        thing = reference()
        return x if thing is None else x * thing.scale

    return Case(f, three, {"drop it": drop})


@program
def weak_dictionary():
    class Thing:
        pass

    thing = Thing()
    table = weakref.WeakKeyDictionary({thing: 2.0})

    def change():
        table[thing] = 5.0
        return lambda: table.__setitem__(thing, 2.0)

    return Case(lambda x: x * table[thing] + len(table), three, {"change it": change})


@program
def identity_and_hash():
    class Key:
        def __init__(self):
            self.value = 1

        def __hash__(self):
            return self.value

        def __eq__(self, other):
            return self.value == other.value

    key = Key()
    other = key

    def f(x):
        same = id(key) == id(other)
        return x * (2 if same else 3) + hash(key) + (key == other)

    return Case(f, three)


@program
def reference_count():
    values = [1.0]
    return Case(lambda x: x * (sys.getrefcount(values) > 0), three)


@program
def queue_filled():
    waiting = queue.Queue()

    def f(x):
        waiting.put(x * 2)
        return x + waiting.qsize()

    return Case(f, three)


@program
def lock_held():
    lock = threading.Lock()

    def f(x):
        with lock:
            return x * 2

    return Case(f, three)


@program
def thread_started():
    def f(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(x * 2))
        thread.start()
        thread.join()
        return found[0]

    return Case(f, three)


@program
def imported_within():
    def f(x):
        from math import pi

        import torch.nn.functional as functional

        return functional.relu(x) * pi

    return Case(f, three)


@program
def evaluated_text():
    text = "x * 2"
    return Case(lambda x: eval(text), three)


@program
def inspected_frame():
    def f(x):
        return x * len(sys._getframe().f_code.co_varnames)

    return Case(f, three)


@program
def recursion_limit():
    def change():
        old = sys.getrecursionlimit()
        sys.setrecursionlimit(old + 10)
        return lambda: sys.setrecursionlimit(old)

    return Case(lambda x: x * (sys.getrecursionlimit() % 7), three, {"raise it": change})


@program
def type_names():
    class First:
        pass

    first = First()
    return Case(lambda x: x * len(type(first).__name__) + len(First.__mro__), three)
