# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: objects of classes in Python that derive from classes in C, and classes
that answer for their attributes themselves."""

import array
import collections
import copy
import dataclasses
import enum
import functools
import inspect

import pytest
import torch
from observing import compiled, is_without_breaks

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Names(dict):
    pass


class Numbers(list):
    pass


class Bag(set):
    pass


class Row(collections.deque):
    pass


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


class Whole(int):
    pass


class Real(float):
    pass


class Text(str):
    pass


def iterates(x, each):
    for item in each:
        x = x + len(str(item))
    return x


def measures(x, each):
    return x + len(each)


def is_true(x, each):
    return x + 1 if each else x


def lists(x, each):
    return x + len(str(list(each)))


SUBCLASSES = [
    (Names(a=1), Names(abc=1, b=2), Names()),
    (Numbers([1, 2]), Numbers([13]), Numbers()),
    (Bag([1, 2]), Bag([13]), Bag()),
    (Row([1, 2]), Row([13]), Row()),
    (array.array("i", [1, 2]), array.array("i", [13]), array.array("i")),
    (Text("ab"), Text("c"), Text("")),
]


@pytest.mark.parametrize("function", [iterates, measures, is_true, lists])
@pytest.mark.parametrize("values", SUBCLASSES, ids=lambda values: type(values[0]).__name__)
def test_what_a_subclass_holds_is_read(function, values):
    fast, x = compiled(function), torch.ones(3)
    for value in (*values, *values):
        assert torch.equal(fast(x, value), function(x, value))


@pytest.mark.parametrize("values", [(Level.LOW, Level.HIGH), (Whole(0), Whole(3)),
                                    (Real(0), Real(0.5))])  # fmt: skip
def test_numbers_of_classes_in_python_are_values(values):
    def adds(x, number):
        return x * (number + 1) + number if number else x + number

    def compares(x, number):
        return x + 1 if number == 0 or number in (3, 0.5) else x

    for function in (adds, compares):
        fast, x = compiled(function), torch.ones(3)
        for value in (*values, *values):
            assert torch.equal(fast(x, value), function(x, value))
        assert is_without_breaks(fast) and weft.stats(fast)["graphs"] == 2


def test_members_of_enumerations_choose():
    class Mode(enum.Enum):
        SUM = "sum"
        MEAN = "mean"

    def f(x, mode):
        if mode in (Mode.SUM,):
            return x.sum() * len(list(Mode))
        return x.mean() if mode == Mode.MEAN else x

    fast, x = compiled(f), torch.randn(3)
    for mode in (Mode.SUM, Mode.MEAN, Mode.SUM, Mode.MEAN):
        assert torch.equal(fast(x, mode), f(x, mode))
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] == 2


class Renamed:
    """As configurations of transformers look up their attributes."""

    renames = {"width": "d"}

    def __init__(self, d):
        self.d = d

    def __getattribute__(self, name):
        if name != "renames" and name in super().__getattribute__("renames"):
            name = super().__getattribute__("renames")[name]
        return super().__getattribute__(name)


def test_classes_find_their_attributes_themselves():
    config = Renamed(2)

    def f(x):
        return x * config.width + (1 if hasattr(config, "none") else 0)

    fast, x = compiled(f), torch.ones(3)
    for _ in range(3):
        assert torch.equal(fast(x), f(x))
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] == 2
    config.d = 5
    assert torch.equal(fast(x), f(x))
    config.other = 7
    Renamed.renames = {"width": "other"}
    try:
        assert torch.equal(fast(x), x * 7)
    finally:
        Renamed.renames = {"width": "d"}
    Renamed.__getattribute__, old = object.__getattribute__, Renamed.__getattribute__
    try:
        with pytest.raises(AttributeError):
            fast(x)
    finally:
        Renamed.__getattribute__ = old


def test_deletions_are_effects_whoever_answers_assignments():
    class Setting:
        def __setattr__(self, name, value):
            super().__setattr__(name, value)

    class Deleting:
        def __delattr__(self, name):
            super().__delattr__(name)

    for kind in (Setting, Deleting):
        held = kind()

        def f(x, held=held):
            held.scale = 3
            y = x * held.scale
            del held.scale
            held.left = 1
            return y

        fast, x = compiled(f), torch.ones(3)
        for _ in range(3):
            assert torch.equal(fast(x), x * 3)
            assert vars(held) == {"left": 1}
            del held.left


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """As outputs of transformers' models."""

    hidden: torch.Tensor | None = None
    pooled: torch.Tensor | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = self.__dict__.get(field.name)
            if value is not None:
                self[field.name] = value

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def to_tuple(self):
        return tuple(self[key] for key in self.keys())


def test_calls_give_objects_of_subclasses_of_containers():
    def f(x):
        made = Output(hidden=x * 2)
        made["pooled"] = made["hidden"].sum()
        named, numbers = Names(a=x), Numbers([x])
        numbers.append(x + 1)
        named["b"] = x + made.to_tuple()[1]
        return made, named, numbers

    fast, x = compiled(f), torch.ones(3)
    for _ in range(3):
        (made, named, numbers), expected = fast(x), f(x)
        assert type(made) is Output and list(made) == ["hidden", "pooled"]
        assert made.hidden is made["hidden"] and made.pooled is made.to_tuple()[1]
        assert torch.equal(made.pooled, expected[0].pooled)
        assert type(named) is Names and torch.equal(named["b"], expected[1]["b"])
        assert type(numbers) is Numbers and torch.equal(numbers[1], expected[2][1])
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] == 2


def test_patterns_match():
    def f(x, given):
        match given:
            case {"scale": scale}:
                return x * scale
            case [first, *rest]:
                return x + first + len(rest)
            case Renamed(d=2):
                return x - 2
        return x

    fast, x = compiled(f), torch.ones(3)
    for given in ({"scale": 2}, {"scale": 3}, [1, 2], [1], Renamed(2), Renamed(3), 4) * 2:
        assert torch.equal(fast(x, given), f(x, given))
    assert is_without_breaks(fast)


def test_defaultdicts_and_counters_of_a_call():
    def f(x, names):
        groups = collections.defaultdict(list)
        for name in names:
            groups[name].append(x * len(name))
        return {name: sum(each) for name, each in groups.items()}

    fast, x = compiled(f), torch.ones(3)
    for names in (["a", "bc", "a"], ["a"], ["a", "bc", "a"], ["a"]):
        made, expected = fast(x, names), f(x, names)
        assert list(made) == list(expected)
        assert all(map(torch.equal, made.values(), expected.values()))
    assert is_without_breaks(fast)


def test_signatures_and_copies():
    def inner(x, scale=2, *, shift=1):
        return x * scale + shift

    class Config:
        def __init__(self):
            self.width, self.parts = 2, [1, {"a": 3}]

    config = Config()

    def f(x):
        other = copy.deepcopy(config)
        other.parts[1]["a"] = 4
        x = x * other.width + other.parts[1]["a"] + len(inspect.signature(inner).parameters)
        return inner(x)

    fast, x = compiled(f), torch.ones(3)
    for _ in range(3):
        assert torch.equal(fast(x), f(x))
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] == 2 and config.parts[1]["a"] == 3
    config.width = 7
    assert torch.equal(fast(x), f(x))
    inner.__defaults__ = (5,)
    assert torch.equal(fast(x), f(x))


def test_generators_are_spread():
    def add(*parts):
        return sum(parts)

    def f(x):
        return add(*(x * each for each in range(3))) + add(*{"a": x}.values())

    fast, x = compiled(f), torch.ones(3)
    for _ in range(3):
        assert torch.equal(fast(x), f(x))
    assert is_without_breaks(fast)


def test_deques_are_read_and_filled():
    recent = collections.deque([1, 2, 3], maxlen=3)

    def f(x, each):
        y = x * each[0] + len(each) + sum(each)
        recent.append(int(x.dim()))
        return y

    fast, plain = compiled(f), torch.ones(3)
    rows = [collections.deque([1, 2]), collections.deque([3, 2]), collections.deque([1, 2])]
    for row in (*rows, *rows):
        assert torch.equal(fast(plain, row), f(plain, row))
    assert is_without_breaks(fast) and list(recent) == [1, 1, 1]


def test_what_a_call_has_filled_is_read_from_what_it_held():
    seen, names, bag = [1], {"a": 1}, {1}

    def f(x):
        seen.append(5)
        names.update(b=2)
        bag.add(7)
        return x * sum(seen) + len(names) + names["a"] + len(bag) + (7 in bag)

    def back():
        seen[:] = [1]
        names.clear()
        names["a"] = 1
        bag.clear()
        bag.add(1)

    fast, x = compiled(f), torch.ones(3)
    for _ in range(4):
        expected = f(x)
        back()
        assert torch.equal(fast(x), expected) and seen == [1, 5] and bag == {1, 7}
        back()
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] == 3
    for change in (lambda: seen.append(2), lambda: names.update(a=4), lambda: bag.add(3)):
        change()
        expected = f(x)
        back()
        change()
        assert torch.equal(fast(x), expected)
        back()


def test_classes_that_iterate_by_generators_are_summed():
    class Items:
        def __init__(self, parts):
            self.parts = parts

        def __iter__(self):
            yield from self.parts

    def f(x, items):
        return sum(items) + sum(zip_lengths(items)) * x

    def zip_lengths(items):
        return map(lambda each: each.dim(), items.parts)

    fast, x = compiled(f), torch.ones(3)
    for parts in ([x, x * 2], [x, x * 3], [x]):
        assert torch.equal(fast(x, Items(parts)), f(x, Items(parts)))
    assert is_without_breaks(fast) and weft.stats(fast)["graphs"] == 2


def test_cached_functions_are_asked_again():
    settings, told = {"scale": 2}, []

    @functools.lru_cache
    def scale(name):
        return settings[name]

    @functools.lru_cache
    def warn_once(text):
        told.append(text)

    def f(x):
        warn_once("f is called")
        return x * scale("scale")

    x = torch.ones(3)
    fast = compiled(f)
    for _ in range(3):
        assert torch.equal(fast(x), x * 2) and told == ["f is called"]
    settings["scale"] = 3
    assert torch.equal(fast(x), x * 2)  # as it is kept
    scale.cache_clear()
    assert torch.equal(fast(x), x * 3) and torch.equal(fast(x), x * 3)
    assert weft.stats(fast)["graphs"] > 0 and told == ["f is called"]
    warn_once.cache_clear()
    fast(x)
    assert told == ["f is called"] * 2


def test_generators_that_are_left_waiting_run_no_code():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.ReLU()))

    def f(x):
        kind = next(p.dtype for p in model.parameters())
        return model(x.to(kind)) + any(isinstance(m, torch.nn.ReLU) for m in model.modules())

    def closes(x):
        def parts():
            try:
                yield x
                yield x * 2
            finally:
                x.add_(1)

        return next(parts()) * 2

    fast, x = compiled(f), torch.ones(2, 3)
    for _ in range(3):
        assert torch.equal(fast(x), f(x))
    assert is_without_breaks(fast)
    fast = compiled(closes)
    for _ in range(3):
        x, y = torch.ones(3), torch.ones(3)
        assert torch.equal(fast(x), closes(y)) and torch.equal(x, y)


def test_tensors_of_a_call_are_given_attributes():
    def f(x):
        y = x * 2
        y.label = "twice"
        return y, len(y.label)

    fast, x = compiled(f), torch.ones(3)
    for _ in range(3):
        y, length = fast(x)
        assert y.label == "twice" and length == 5 and torch.equal(y, x * 2)
    assert is_without_breaks(fast) and weft.stats(fast)["hits"] == 2


def test_items_of_subclasses_of_dict_are_set():
    class Missing(dict):
        def __missing__(self, key):
            return 4

    def f(x):
        counted["calls"] = 7
        found["a"] = found["b"] + 1
        return x * counted["calls"] + found["a"] + counted["other"]

    counted, found = collections.Counter(calls=1), Missing()
    fast, x = compiled(f), torch.ones(3)
    for _ in range(3):
        assert torch.equal(fast(x), torch.full((3,), 12.0))
        assert dict(counted) == {"calls": 7} and dict(found) == {"a": 5}
    assert is_without_breaks(fast) and weft.stats(fast)["hits"]
    counted["other"] = 2
    found["b"] = 9
    found["a"] = counted["calls"] = 0
    assert torch.equal(fast(x), torch.full((3,), 19.0))
    assert counted == {"calls": 7, "other": 2} and found == {"a": 10, "b": 9}
