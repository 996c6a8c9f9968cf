# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What observed calls give or keep that classes in C make by a call, and keys that hash by their
address."""

import collections
import functools
import itertools
from typing import List, Optional  # noqa: UP035

import pytest
import torch
from observing import compiled
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def hits(function):
    stats = weft.stats(function)
    assert not stats["breaks"], stats["breaks"]
    return stats["hits"]


def deque_of(x):
    made = collections.deque(maxlen=3)
    for number in range(5):
        made.append(x * number)
    made.rotate(1)
    return made


def defaultdict_of(x):
    made = collections.defaultdict(list)
    made["a"].append(x + 1)
    made["b"] = [x]
    return made


def keyed_by_tensors(x):
    y = x + 1
    numbers = {x: 1.0, y: 2.0}
    numbers[x] = numbers[y] + 3
    return y * numbers[x], len(numbers), x in numbers


def mixed(x):
    made = {3, "a", x.shape[0]}
    made.discard("a")
    made |= {7}
    return made, frozenset({1, 2})


RESULTS = {
    "set": lambda x: {3, 1, "a", x.shape[0]},
    "changed set": mixed,
    "set in another order": lambda x: ({7, 15}, {15, 7}, frozenset([7, 15])),
    "set of tensors": lambda x: {x + 1, x},
    "deque": deque_of,
    "endless deque": lambda x: collections.deque([x, x + 1]),
    "defaultdict": defaultdict_of,
    "partial": lambda x: functools.partial(torch.add, x + 1, alpha=2),
    "partial of partials": lambda x: functools.partial(functools.partial(max, 1), 2),
    "keys": lambda x: {x: 1, "a": [x]},
    "one object twice": lambda x: [collections.deque([x])] * 2,
}


def same(x, y):
    if isinstance(x, torch.Tensor):
        return isinstance(y, torch.Tensor) and torch.equal(x, y)
    if type(x) is not type(y):
        return False
    if isinstance(x, functools.partial):
        return same((x.func, x.args, x.keywords), (y.func, y.args, y.keywords))
    if isinstance(x, (set, frozenset)) and not any(isinstance(a, torch.Tensor) for a in x):
        return list(x) == list(y)
    if isinstance(x, (set, frozenset)):
        return len(x) == len(y) and all(any(same(a, b) for b in y) for a in x)
    if isinstance(x, dict):
        kept = getattr(x, "default_factory", None) is getattr(y, "default_factory", None)
        return kept and same(list(x.items()), list(y.items()))
    if isinstance(x, (list, tuple, collections.deque)):
        kept = getattr(x, "maxlen", None) == getattr(y, "maxlen", None)
        return kept and len(x) == len(y) and all(map(same, x, y))
    return x == y


@pytest.mark.parametrize("what", RESULTS)
def test_results_that_classes_in_c_make(what):
    program, fast = RESULTS[what], compiled(RESULTS[what])
    seen = []
    for _ in range(3):
        x = torch.randn(4)
        found = fast(x)
        assert same(found, program(x))
        assert all(found is not each for each in seen) or what == "changed set"
        seen.append(found)
    assert hits(fast) == 2
    if what == "one object twice":
        assert found[0] is found[1]


def test_keys_that_are_tensors():
    fast = compiled(keyed_by_tensors)
    for _ in range(3):
        x = torch.randn(4)
        assert same(fast(x), keyed_by_tensors(x))
    assert hits(fast) == 2


def test_they_are_kept_as_one_object():
    kept = []

    def keeps(x):
        made = collections.deque([x + 1], maxlen=2)
        kept.append(made)
        made.append({1, 2})
        return made

    fast, x = compiled(keeps), torch.ones(2)
    for number in range(4):
        found = fast(x)
        assert kept[-1] is found and len(kept) == number + 1
        assert same(found, collections.deque([x + 1, {1, 2}], maxlen=2))
    assert hits(fast) == 3


def test_a_defaultdict_from_outside_is_set():
    def sets(x, into):
        into["a"] = x + 1
        return x * 2

    fast = compiled(sets)
    for _ in range(3):
        x, into = torch.randn(2), collections.defaultdict(list)
        fast(x, into)
        assert type(into) is collections.defaultdict and torch.equal(into["a"], x + 1)
    assert hits(fast) == 2
    into = {}
    fast(x, into)
    assert type(into) is dict and torch.equal(into["a"], x + 1)


class Running(nn.Module):
    """Its state is made by the first call, and what is set first is not read by that."""

    def __init__(self):
        super().__init__()
        self.mean = self.spread = None

    def forward(self, x):
        mean, spread = x.mean(0), x.var(0)
        if self.spread is None:
            self.mean, self.spread = mean, spread
        else:
            self.mean = 0.9 * self.mean + 0.1 * mean
            self.spread = 0.9 * self.spread + 0.1 * spread
        return (x - self.mean) / self.spread


@pytest.mark.parametrize("options", [{}, {"capture": "observe", "backend": "eager"}])
def test_what_the_first_call_sets_is_an_input_of_the_second(options):
    model, twin = Running().eval(), Running().eval()
    fast = weft.compile(model, **options)
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(8, 3)
            torch.testing.assert_close(fast(x), twin(x))
            torch.testing.assert_close(model.spread, twin.spread)
    assert weft.stats(fast)["hits"] == 2


def kinds(x):
    if isinstance(x, torch.FloatTensor):
        return x + 1
    return x * 2 if x.__class__ is torch.Tensor else x


def test_classes_of_tensors():
    fast = compiled(kinds)
    for dtype in (torch.float32, torch.float64, torch.int32, torch.float32):
        x = torch.ones(3, dtype=dtype)
        assert same(fast(x), kinds(x))
    assert hits(fast) == 1
    assert same(fast(nn.Parameter(torch.ones(3))), torch.ones(3) + 1)


def test_slices_bounded_by_tensors():
    def cuts(x, low):
        bounds = slice(low, low + 2)
        return x[bounds], bounds

    fast, x = compiled(cuts), torch.arange(6.0)
    for low in (0, 1, 1, 3, 5, 0):
        found, expected = fast(x, torch.tensor(low)), cuts(x, torch.tensor(low))
        assert torch.equal(found[0], expected[0]) and found[1].start == low


def test_chains_of_lists():
    def chains(x, lists):
        for each in itertools.chain.from_iterable(lists):
            x = x + each
        return x

    fast, x = compiled(chains), torch.ones(2)
    for lists in ([[1, 2], (3,)], [[1, 2], (3,)], [[1], [2], [4]], [], [{5: 1}, [x]]):
        assert torch.equal(fast(x, lists), chains(x, lists))
    assert hits(fast) == 1


def expects(x, value):
    made = list[int] | tuple[torch.Tensor, ...] | None, List[int], Optional[int]  # noqa: UP006, UP045
    if isinstance(value, int | float):
        return x + value, made
    return x * (2 if isinstance(value, str | None) else 3), collections.abc.Sequence[int]


def test_expressions_of_types():
    fast, x = compiled(lambda x, value: expects(x, value)[0]), torch.ones(2)
    for value in (1, 1, 2.5, None, "a", (), (), 1):
        assert torch.equal(fast(x, value), expects(x, value)[0])
    assert hits(fast) == 3


def test_tensors_are_printed_as_they_were(capsys):
    def prints(x):
        y = x * 2
        print("y is", y, y.shape, sep=" ")
        y.add_(1)
        print(y)
        return y

    fast = compiled(prints)
    for number in range(4):
        x = torch.full((2,), float(number))
        fast(x)
        found = capsys.readouterr().out
        prints(x)
        assert found == capsys.readouterr().out
    assert hits(fast) == 3


def test_wrappers_made_within():
    def outer(x: torch.Tensor) -> torch.Tensor:
        "Doubles."
        return x * 2

    def wraps(x):
        @functools.wraps(outer)
        def inner(*args):
            return outer(*args) + 1

        return inner(x), inner.__name__, inner.__doc__

    fast, x = compiled(wraps), torch.ones(2)
    for _ in range(3):
        assert same(fast(x), wraps(x))
    assert hits(fast) == 2


kept = [1, 2]


@pytest.mark.parametrize(
    ("function", "known"),
    [
        (lambda x: iter([x, x + 1]), True),
        (lambda x: zip([x, x + 1], ("a", "b")), True),
        (lambda x: map(torch.relu, [x, x - 3]), False),  # which C would call
        (lambda x: map(lambda y: y * 2, [x, x - 3]), True),
        (lambda x: {"all": enumerate(zip([x], [x + 1]), 4)}, True),
        (lambda x: [itertools.islice(zip(kept, [x]), 1), x], False),
        (lambda x: (each := iter([x, x + 1]), next(each))[0], False),  # which is not at its start
        (lambda x: zip([x], [x], strict=True), False),
        (lambda x: (x * each for each in kept), True),
    ],
)
def test_iterators_that_a_call_gives(function, known):
    fast = compiled(function)
    for number in range(3):
        x, seen = torch.full((2,), float(number)), []
        for given in (fast(x), function(x)):
            given = given["all"] if isinstance(given, dict) else given
            given = given[0] if isinstance(given, list) else given
            seen.append((type(given), str(list(given))))
        assert seen[0] == seen[1]
    assert (weft.stats(fast)["hits"] == 2) == known


def test_an_iterator_over_a_list_from_outside():
    fast, seen = compiled(lambda x: (x + 1, iter(kept))), []
    for number in range(3):
        _, given = fast(torch.ones(2))
        kept.append(number)  # which it finds there
        seen.append(list(given))
        kept.pop()
    assert seen == [[1, 2, number] for number in range(3)]
