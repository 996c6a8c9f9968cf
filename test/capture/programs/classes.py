# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classes that Python makes or completes: enumerations as keys, dataclasses told and hashed,
properties that are kept, orders, metaclasses."""

import copy
import dataclasses
import enum
import functools
import operator
from itertools import accumulate, compress, dropwhile, filterfalse, starmap, takewhile

from torch import nn, randn

from capture.corpus import Case, call, program


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


SCALES = {Mode.SUM: 2.0, Mode.MEAN: 3.0}


def three():
    return call(randn(3))


@dataclasses.dataclass
class Inner:
    size: int = 2


@dataclasses.dataclass
class Outer:
    inner: Inner
    name: str = "outer"


class Holder:
    pass


@program
def members_as_keys():
    holder = Holder()
    holder.mode, holder.level, holder.table = Mode.SUM, Level.LOW, {Level.LOW: 1.0, Level.HIGH: 5.0}

    def f(x):
        made = {holder.mode: x, Mode.MEAN: x * 2}
        scale = SCALES[holder.mode] + SCALES.get(Mode.MEAN, 0.0) + holder.table[holder.level]
        known = holder.mode in {Mode.SUM}, holder.mode in SCALES, holder.mode in Mode
        return made[Mode.MEAN] * scale, known, list(SCALES), made

    return Case(f, three)


@program
def a_member_by_its_value_or_name():
    holder = Holder()
    holder.text, holder.name = "sum", "MEAN"
    return Case(lambda x: x * SCALES[Mode(holder.text)] + SCALES[Mode[holder.name]], three)


@program
def a_dataclass_told():
    outer = Outer(Inner())

    def f(x):
        return x * outer.inner.size, repr(outer), f"{outer.inner}", str(outer)

    return Case(f, three)


@program
def a_frozen_dataclass_hashed():
    made = dataclasses.make_dataclass("Key", [("a", int), ("b", str, "z")], frozen=True)
    holder = Holder()
    holder.key = made(1)
    return Case(lambda x: (x * 2, hash(holder.key), hash((1, "z"))), three)


class Lazy:
    scale = 2.0

    @functools.cached_property
    def doubled(self):
        return self.scale * 2


@program
def a_kept_property():
    lazy = Lazy()

    def forgets():
        kept = vars(lazy).pop("doubled", None)
        return lambda: None if kept is None else vars(lazy).update(doubled=kept)

    return Case(lambda x: x * lazy.doubled, three, {"forgets": forgets}, (lazy,))


@functools.total_ordering
class Ordered:
    def __init__(self, value, x):
        self.value, self.x = value, x

    def __eq__(self, other):
        return self.value == other.value

    def __lt__(self, other):
        return self.value < other.value

    def __radd__(self, other):
        return self if other == 0 else NotImplemented

    def __add__(self, other):
        return Ordered(self.value + other.value, self.x + other.x)


@program
def ordered_objects():
    some = [Ordered(2, randn(3)), Ordered(1, randn(3)), Ordered(3, randn(3))]

    def f(x):
        mine = list(some)
        mine.sort(key=lambda each: -each.value)
        return sorted(some)[0].x * x, max(some).x, min(some[0], some[2]).x, mine[0].x, sum(some).x

    return Case(f, three)


@program
def sorted_by_what_a_getter_takes():
    pairs = [(2, "b"), (1, "c")]
    first = operator.itemgetter(0)

    def f(x):
        mine = [(number, x * number) for number, _ in pairs]
        mine.sort(key=first, reverse=True)
        last, begin = operator.itemgetter(1, 0)(pairs[0])
        return sorted(mine, key=first)[0][1], max(mine, key=first)[1], mine[0][1], last, begin

    return Case(f, three)


class Table(type):
    def __getitem__(cls, key):
        return cls.items[key]

    def __len__(cls):
        return len(cls.items)

    def __contains__(cls, key):
        return key in cls.items


@program
def classes_that_answer():
    class Items(metaclass=Table):
        items = {"a": 2.0, "b": 3.0}

    class Sized:
        size = 3

        def __class_getitem__(cls, key):
            return cls.size + key

    return Case(lambda x: (x * Items["a"] + len(Items) + Sized[1], "b" in Items), three)


@program
def the_state_of_a_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x):
            state = self.state_dict()
            return self.inner(x), {name: each.abs() for name, each in state.items()}, state

    return Case(Model().eval(), three)


@program
def iterators_that_ask():
    holder = Holder()
    holder.limit, holder.chosen = 2, [1, 0, 1]

    def f(x, some):
        small = takewhile(lambda each: each.shape[0] <= holder.limit, some)
        large = dropwhile(lambda each: each.shape[0] <= holder.limit, some)
        sums = accumulate([each.sum() for each in some], lambda one, other: one + 2 * other)
        rest = filterfalse(lambda each: each.shape[0] == holder.limit, some)
        scaled = starmap(lambda each, factor: each.sum() * factor, zip(some, [x[0], x[1], x[2]]))
        chosen = compress(some, holder.chosen)
        return [*small], [*large], [*sums], [*rest], [*scaled], [*chosen]

    return Case(f, lambda: call(randn(3), [randn(2), randn(3), randn(4)]))


@program
def an_error_thrown_into_a_generator():
    log = []

    def gives(x):
        try:
            try:
                yield x
            except KeyError as error:
                log.append(str(error))
                yield x * 2
        finally:
            log.append("ends")

    def f(x):
        generator = gives(x)
        first, second = next(generator), generator.throw(KeyError("k"))
        generator.close()
        return first + second

    return Case(f, three, state=(log,))


@program
def copies_of_a_dataclass():
    outer = Outer(Inner())

    def f(x):
        shallow, deep = copy.copy(outer), copy.deepcopy(outer)
        deep.inner.size += 1
        shallow.name = "copy"
        return x * deep.inner.size, shallow, deep, shallow == outer, dataclasses.asdict(deep)

    return Case(f, three)


@program
def sorted_by_lookups_and_functions():
    scores, order = {"a": 2, "b": 1, "c": 3}, ["c", "a", "b"]
    weights = [3, 1, 2]

    def f(x):
        items = sorted(scores.items(), key=lambda pair: pair[1])
        drawn = max(((number, x * number) for number in weights), key=lambda pair: -pair[0])
        pairs = sorted(zip(weights, [x, x * 2, x * 3], strict=True), key=lambda pair: pair[0])
        return drawn[1] + pairs[0][1], items, max(scores, key=scores.get), sorted(order, key=len)

    return Case(f, three)
