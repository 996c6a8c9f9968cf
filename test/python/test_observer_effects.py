# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What observed calls do to the world outside is done again by each call, once and in order."""

import copy
import dataclasses
import functools
import logging
import sys
import types
import warnings
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from observing import compiled
from torch import nn

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def is_whole(function):
    stats = weft.stats(function)
    return stats["graphs"] == 1 and not stats["breaks"] and stats["hits"] > 0


class World:
    """What programs change; two equal ones are compared."""

    def __init__(self):
        self.list, self.dict, self.set, self.object = (
            [1.0],
            {"k": 1.0},
            {1},
            types.SimpleNamespace(),
        )
        self.module, self.nested = nn.Linear(2, 2), [{"a": []}]

    def contents(self):
        return copy.deepcopy(
            (self.list, self.dict, self.set, vars(self.object), self.nested,
             {k: v for k, v in vars(self.module).items() if not k.startswith("_")})
        )  # fmt: skip


def append(world, x):
    world.list.append(x * 2)
    return x + 1


def extend(world, x):
    world.list.extend([x, 2])
    world.list += (3, x * 2)
    return x


def clear_and_fill(world, x):
    world.list.clear()
    world.list.append(x * 2)
    return world.list[0] + len(world.list)


def insert_and_pop(world, x):
    x = x * world.list.pop()
    world.list.insert(0, 5)
    return x * world.list.pop()


def set_item(world, x):
    world.list[0] = x * 3
    return x * 2


def keep_containers(world, x):
    """Made by the call, kept, and changed behind that."""
    made = [x * 2, {"inner": (x, 1)}]
    world.list.append(made)
    made.append("late")
    made[1]["more"] = x.sum()
    return made, len(made)


def keep_an_object(world, x):
    world.object.kept = made = Pair(x * 2, [1])
    made.second.append(x)
    made.first = made.first + 1
    return made


def fill_a_dict(world, x):
    world.dict["sum"] = x.sum()
    world.dict["k"] = 2.0
    return x * world.dict["k"]


def empty_a_dict(world, x):
    factor = world.dict.pop("k")
    world.dict.update(other=x, factor=factor)
    return x * factor


def setdefault(world, x):
    return x * world.dict.setdefault("k", 7.0) * world.dict.setdefault("missing", 3.0)


def fill_a_set(world, x):
    world.set.add("seen")
    world.set.discard(1)
    return x


def set_and_delete_attributes(world, x):
    world.module.scratch = x * 2
    result = world.module.scratch + 1
    del world.module.scratch
    world.module.last = result
    world.object.shape = x.shape
    return result


def nested(world, x):
    world.nested[0]["a"].append(x)
    return x * len(world.list)


def write_ahead_of_a_branch(world, x):
    world.list.append(1)
    world.dict["branch"] = x
    world.object.seen = True
    world.set.add(2)
    return x * 2 if x.sum() > 0 else x * 3


PROGRAMS = [append, extend, clear_and_fill, insert_and_pop, set_item, keep_containers,
            keep_an_object, fill_a_dict, empty_a_dict, setdefault, fill_a_set,
            set_and_delete_attributes, nested, write_ahead_of_a_branch]  # fmt: skip
# Those by what a container holds are captured anew when it holds something else.
AGAIN = {insert_and_pop, empty_a_dict, setdefault, set_item, set_and_delete_attributes}


@dataclasses.dataclass
class Pair:
    first: object
    second: object


def equal(left, right):
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and torch.equal(left, right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and equal(list(left.values()), list(right.values()))
    if isinstance(left, Pair):
        return equal(vars(left), vars(right))
    return left == right


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_changes_are_eagers(program):
    """Also where a branch on data leaves the program behind them: they are taken back first."""
    world, twin = World(), World()
    fast = compiled(lambda x: program(world, x))
    for number in range(6):
        x = torch.ones(2) * (-1) ** (number // 3)
        result, expected = fast(x), program(twin, x)
        assert equal(result, expected) and equal(world.contents(), twin.contents()), number
        if program in AGAIN:
            world.__init__(), twin.__init__()
    if program not in AGAIN and program is not write_ahead_of_a_branch:
        assert is_whole(fast), weft.stats(fast)
    assert weft.stats(fast)["graphs"] > 0


def test_a_list_that_grows_is_read_as_it_was():
    kept = []

    def f(x):
        kept.append(1)
        return x * len(kept)

    fast, x = compiled(f), torch.ones(1)
    assert [fast(x).item() for _ in range(4)] == [1, 2, 3, 4] and kept == [1] * 4
    del kept[2:]
    stats = weft.stats(fast)
    assert fast(x).item() == 3 and not stats["breaks"] and weft.stats(fast)["hits"] == 3


def test_a_variable_of_an_outer_function_is_set():
    last = None

    def f(x):
        nonlocal last
        last = x * 2
        return last + 1

    fast = compiled(f)
    for number in range(4):
        x = torch.ones(2) * number
        assert torch.equal(fast(x), x * 2 + 1) and torch.equal(last, x * 2)
    assert is_whole(fast)


def test_prints_come_once_a_call(capsys):
    def f(x):
        print("shape", tuple(x.shape), end=";")
        return x * 2

    fast = compiled(f)
    for _ in range(4):
        fast(torch.ones(2))
    assert capsys.readouterr().out == "shape (2,);" * 4
    assert is_whole(fast)


def test_nothing_is_printed_ahead_of_a_branch_that_is_left(capsys):
    def f(x):
        print("called")
        return x * 2 if x.sum() > 0 else x * 3

    fast = compiled(f)
    for number in range(6):
        fast(torch.ones(2) * (-1) ** number)
    assert capsys.readouterr().out == "called\n" * 6


def test_warnings_are_of_the_programs_line():
    def f(x):
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
        return torch.nn.functional.softmax(x)

    def heard(function):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            function(torch.ones(2))
        return [(str(each.message), each.category, each.filename, each.lineno) for each in found]

    fast = compiled(f)
    assert [heard(fast) for _ in range(4)] == [heard(f)] * 4 and len(heard(f)) == 2
    assert is_whole(fast)
    for action in ("error", "ignore"):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            if action == "ignore":
                fast(torch.ones(2))
            else:
                warnings.simplefilter("ignore", weft.errors.WeftWarning)
                with pytest.raises(DeprecationWarning):
                    fast(torch.ones(2))


def test_logs_are_of_the_programs_line(caplog):
    logger = logging.getLogger("weft.test")

    def f(x):
        logger.info("size %d", len(x))
        return x * 2

    def heard(function, level):
        caplog.clear()
        with caplog.at_level(level, logger="weft.test"):
            function(torch.ones(2))
        return [(each.getMessage(), each.lineno, each.funcName) for each in caplog.records]

    logger.isEnabledFor(logging.INFO)
    fast = compiled(f)
    expected = heard(f, "INFO")
    assert [heard(fast, "INFO") for _ in range(3)] == [expected] * 3 and len(expected) == 1
    assert is_whole(fast)
    assert heard(fast, "ERROR") == []


def test_objects_and_ordered_dicts_are_given():
    def f(x):
        made = OrderedDict(out=x * 2)
        made["aux"] = x + 1
        return made, Pair(x, [made["out"]])

    fast = compiled(f)
    for _ in range(3):
        x = torch.randn(2)
        made, pair = fast(x)
        assert type(made) is OrderedDict and list(made) == ["out", "aux"]
        assert type(pair) is Pair and pair.first is x and pair.second[0] is made["out"]
        assert torch.equal(made["out"], x * 2)
    assert is_whole(fast)


class Swish(torch.autograd.Function):
    scale = 2.0

    @staticmethod
    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return x * torch.sigmoid(x) * Swish.scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * ctx.power, None


@pytest.mark.parametrize("gradient", [False, True])
def test_autograd_functions_keep_their_backward(gradient, monkeypatch):
    fast = compiled(lambda x: Swish.apply(x, 3) + 1)

    def agrees():
        x = torch.randn(4, requires_grad=gradient)
        with torch.set_grad_enabled(gradient):
            result, expected = fast(x), Swish.apply(x, 3) + 1
        assert torch.equal(result, expected) and result.requires_grad == gradient
        if gradient:
            (mine,), (other,) = (torch.autograd.grad(each.sum(), x) for each in (result, expected))
            assert torch.equal(mine, other) and torch.equal(mine, x * 3)

    for _ in range(3):
        agrees()
    assert is_whole(fast)
    monkeypatch.setattr(Swish, "scale", 5.0)
    agrees()
    monkeypatch.setattr(Swish, "forward", staticmethod(lambda ctx, x, power: x * power))
    monkeypatch.setattr(Swish, "backward", staticmethod(lambda ctx, grad: (grad * 0, None)))
    x = torch.randn(4)
    assert torch.equal(fast(x), x * 3 + 1)


def test_an_autograd_function_with_gradients_changes_nothing_outside():
    seen = []

    class Counts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(1)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    fast = compiled(lambda x: Counts.apply(x))
    for _ in range(3):
        fast(torch.ones(2, requires_grad=True))
    assert seen == [1] * 3
    assert any("autograd.Function" in each for each in weft.stats(fast)["breaks"])


def test_what_is_cast_is_put_back_where_a_call_leaves_its_path():
    layer = nn.Linear(3, 3)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(x)
            y = y * 2 if y.sum() > 0 else y * 3
        return y, layer(x)

    fast = compiled(f)
    for number in range(8):
        x = torch.ones(2, 3) * (-1) ** number * 5
        result, expected = fast(x), f(x)
        assert all(map(torch.equal, result, expected))
        assert not torch.is_autocast_enabled("cpu") and result[1].dtype == torch.float32
    assert weft.stats(fast)["hits"] > 0 and not weft.stats(fast)["breaks"]


def objects_apart():
    held, kept, table = types.SimpleNamespace(v=1), [1.0], {"k": 1}

    def sets_an_attribute(x, given):
        given.v = 5
        return x * held.v

    def appends(x, given):
        given.append(2.0)
        return x * len(kept)

    def sets_an_entry(x, given):
        given["k"] = 7
        return x * table["k"]

    def sets_by_dict(x, given):
        given["v"] = 7
        return x * held.v

    return {
        sets_an_attribute: (lambda: types.SimpleNamespace(v=1), held),
        appends: (list, kept),
        sets_an_entry: (dict, table),
        sets_by_dict: (dict, vars(held)),
    }


@pytest.mark.parametrize("number", range(4))
def test_what_was_apart_when_it_was_changed_is_apart(number):
    (program, (make, alias)), (twin, (_, other)) = (
        list(objects_apart().items())[number] for _ in range(2)
    )
    fast, x = compiled(program), torch.ones(1)
    for _ in range(3):
        assert torch.equal(fast(x, make()), twin(x, make()))
    assert is_whole(fast)
    assert torch.equal(fast(x, alias), twin(x, other))


def test_two_arguments_that_are_one_object_later():
    def f(x, first, second):
        first.append(1)
        return x * len(second)

    fast, x, both = compiled(f), torch.ones(1), [0]
    assert [fast(x, [], [0]).item() for _ in range(3)] == [1] * 3 and is_whole(fast)
    assert fast(x, both, both).item() == 2


def test_a_result_to_write_to_is_resized_by_the_program_itself():
    def f(x, out):
        torch.mul(x, 2, out=out)
        return out

    fast = compiled(f)
    for _ in range(3):
        fast(torch.ones(3), torch.zeros(3))
    for _ in range(2):
        out = torch.zeros(3)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert torch.equal(fast(torch.ones(5), out), torch.full((5,), 2.0))
        assert [Path(each.filename).name for each in told if "resized" in str(each.message)] == [
            Path(__file__).name
        ]


@functools.lru_cache(None)
def told_once(logger, text):
    logger.warning(text)


def test_a_cached_function_that_tells_something_once(caplog):
    logger = logging.getLogger("weft.told_once")

    def step(x):
        told_once(logger, "odd")
        return x * 2

    fast, x = compiled(step), torch.ones(2)
    for _ in range(4):
        assert torch.equal(fast(x), x * 2)
    assert is_whole(fast) and [each.message for each in caplog.records] == ["odd"]
    told_once.cache_clear()
    fast(x), fast(x)
    assert [each.message for each in caplog.records] == ["odd", "odd"]


def test_a_cached_function_that_does_more_is_not_captured():
    seen = []

    @functools.lru_cache(None)
    def once(key):
        seen.append(key)
        return 1

    def step(x):
        return x * once(2)

    fast, x = compiled(step), torch.ones(2)
    fast(x), once.cache_clear(), fast(x)
    assert seen == [2, 2]


def test_what_is_being_handled_around_the_call_is_guarded():
    def step(x):
        return x * (2 if sys.exc_info()[0] is None else 3)

    fast, x = compiled(step), torch.ones(2)
    fast(x), fast(x)
    assert is_whole(fast)
    try:
        raise ValueError
    except ValueError:
        assert torch.equal(fast(x), x * 3)
    assert torch.equal(fast(x), x * 2)
