# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing the interpreter: what becomes of a call, and what ends a capture."""

import enum
import gc
import operator
import sys
import threading
import warnings
import weakref

import pytest
import torch
from observing import compiled, is_whole, observed
from torch import nn

import weft
from weft import errors

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4)])
        self.scale = 2.0

    def forward(self, x, *, skip=True):
        for number, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) * (number + self.scale) + (x if skip else 0)
        return {"out": x, "parts": [each.sum() for each in x.split(2, dim=-1)]}


def test_a_module_is_captured_whole_and_trains():
    model, x = Layers(), torch.randn(3, 4)
    fast = compiled(model)
    for _ in range(3):
        result, expected = fast(x), model(x)
        assert torch.equal(result["out"], expected["out"])
        assert all(map(torch.equal, result["parts"], expected["parts"]))
    assert is_whole(fast) and weft.stats(fast)["hits"] == 2
    result["out"].sum().backward()
    assert model.layers[0].weight.grad is not None


def test_python_does_not_run_again():
    calls = []

    def f(x):
        return sys.intern("a") and g(x)

    def g(x):
        return x * 2

    class Counting:
        def __call__(self, x):
            return x + 1

    fast = compiled(lambda x: g(x) + Counting()(x))
    x = torch.ones(3)
    fast(x)
    sys.setprofile(lambda frame, event, argument: calls.append(frame.f_code.co_name))
    try:
        fast(x)
    finally:
        sys.setprofile(None)
    assert "g" not in calls and "__call__" not in calls


CHANGES = {
    "an attribute": lambda model: setattr(model, "scale", 3.0),
    "an attribute's type": lambda model: setattr(model, "scale", 2),
    "a layer": lambda model: model.layers.__setitem__(0, nn.Linear(4, 4)),
    "one more layer": lambda model: model.layers.append(nn.Linear(4, 4)),
    "a layer's weight": lambda model: setattr(
        model.layers[0], "weight", None or nn.Parameter(torch.ones(4, 4))
    ),  # noqa: E501
    "a hook": lambda model: model.layers[0].register_forward_hook(lambda m, a, out: out * 2),
    "the class": lambda model: setattr(model, "__class__", Doubled),
    "the dict": lambda model: setattr(model, "__dict__", {**vars(model), "scale": 5.0}),
    "the instance's forward": lambda model: setattr(model, "forward", lambda x: {"out": x}),
    "data": lambda model: setattr(model.layers[0].weight, "data", torch.ones(4, 4)),
}


class Doubled(Layers):
    def forward(self, x, *, skip=True):
        return {"out": x * 2, "parts": []}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_is_seen(change):
    model, x = Layers(), torch.randn(3, 4)
    fast = compiled(model)
    fast(x)
    CHANGES[change](model)
    assert torch.equal(fast(x)["out"], model(x)["out"])


def test_a_replaced_class_attribute_is_seen():
    class Scaled:
        factor = 2.0

        def __call__(self, x):
            return x * self.factor

    scaled = Scaled()
    fast, x = compiled(lambda x: scaled(x)), torch.ones(3)
    assert fast(x).sum() == 6 and fast(x).sum() == 6
    Scaled.factor = 3.0
    assert fast(x).sum() == 9
    Scaled.__call__ = lambda self, x: x
    assert fast(x).sum() == 3
    assert weft.stats(fast)["hits"] == 1


def test_why_miss_and_guards_are_in_the_programs_terms():
    table = {"factor": 2.0}

    def f(x, *, bias):
        return x * table["factor"] + bias

    fast, x = compiled(f), torch.ones(3)
    fast(x, bias=1.0)
    assert any("table['factor'] == 2.0" in line for line in fast.guards())
    assert fast.why_miss(x, bias=1.0) is None
    assert "bias == 1.0" in fast.why_miss(x, bias=2.0)
    table["factor"] = 3.0
    assert "table['factor'] == 2.0" in fast.why_miss(x, bias=1.0)
    assert "float32[3]" in fast.why_miss(x.double(), bias=1.0)


def test_a_branch_on_data_is_taken_again():
    """The program is of one path; a call of the other runs eagerly, and nothing is wrong."""

    def f(x):
        return x * 2 if x.sum() > 0 else x - 1

    fast, x = compiled(f), torch.ones(3)
    for each in (x, x, -x, x):
        assert torch.equal(fast(each), f(each))
    assert weft.stats(fast)["hits"] == 2


def test_a_path_left_within_no_grad_leaves_no_trace():
    def f(x, w):
        with torch.no_grad():
            scale = 2.0 if x.sum() > 0 else 3.0
        return x * w * scale

    fast, x, w = compiled(f), torch.ones(3), torch.ones(3, requires_grad=True)
    fast(x, w)
    result = fast(-x, w)
    assert torch.is_grad_enabled() and result.requires_grad
    assert torch.equal(result, f(-x, w))


def test_data_is_not_compared_unseen():
    """By functions in C: of the truth of each only the interpreter's own is seen."""
    programs = {
        "filter": lambda x: list(filter(lambda row: row.sum() > 0, x.unbind())),
        "index": lambda x: x * list(x.unbind()).index(x[0]),
        "in": lambda x: x * (x[0] in [x[1], x[0]]),
        "max": lambda x: max(x.unbind()),
        "any": lambda x: x if any(each > 0 for each in x.unbind()) else -x,
        "sorted": lambda x: sorted(x.unbind(), key=lambda row: float(row)),
        "dict": lambda x: {float(each): each for each in x.unbind()},
    }
    for name, program in programs.items():
        fast = compiled(program)
        for each in (
            torch.tensor([1.0, 2.0]),
            torch.tensor([-2.0, -3.0]),
            torch.tensor([5.0, 4.0]),
        ):
            for _ in range(2):
                result, expected = fast(each), program(each)
                assert str(result) == str(expected), name


class Mode(enum.Enum):
    DOUBLE = 2
    TRIPLE = 3


def test_an_argument_that_the_program_holds_itself():
    table, held = {"scale": [2.0]}, torch.ones(3)
    programs = {
        "of a class": lambda x, y: x * 2 if y is Mode.DOUBLE else x * 3,
        "a default": lambda x, y, z=held: x * 2 if y is z else x * 3,
        "an entry": lambda x, y: x * 2 if y is table["scale"] else x * 3,
        "a variable": lambda x, y: x * 2 if y is held else x * 3,
    }
    others = {"of a class": [Mode.DOUBLE, Mode.TRIPLE], "an entry": [table["scale"], [2.0]]}
    for name, program in programs.items():
        fast, x = compiled(program), torch.ones(3)
        for value in others.get(name, [held, torch.ones(3)]) * 2:
            assert torch.equal(fast(x, value), program(x, value)), name


def test_the_bases_of_a_class_are_seen():
    class Marked:
        pass

    class Plain:
        pass

    class Value(Plain):
        pass

    value = Value()
    fast = compiled(lambda x: x * (2 if isinstance(value, Marked) else 3))
    x = torch.ones(3)
    assert fast(x).sum() == 9 and fast(x).sum() == 9
    Value.__bases__ = (Marked,)
    assert fast(x).sum() == 6


def test_fresh_results_each_time_and_the_same_objects_for_inputs():
    fast, x = compiled(lambda x, y: ([y, y * 1], x)), torch.ones(3)
    first, second = fast(x, x * 2), fast(x, x * 3)
    assert first[0] is not second[0] and second[1] is x
    assert second[0][0].sum() == 9


BREAKS = {
    "a write that changes its shape": (lambda x: x.unsqueeze_(0), "changes a tensor from outside"),
    "an assignment to an item": (lambda x: x.__setitem__(0, 1), "__setitem__"),
    "an address": (lambda x: x + (x.data_ptr() * 0), "data_ptr"),
    "an identity": (lambda x: x + id(x) * 0, "address"),
    "print": (lambda x: print({x.dim()}) or x + 1, "print"),
    "a global setting": (lambda x: [torch.set_grad_enabled(False), x][1], "setting"),
    "a generator of numbers": (
        lambda x: x + (torch.Generator().seed() > 0),
        "Generator.seed",
    ),
}
EFFECTS = {
    "a write to an argument": lambda x: x.add_(1),
    "a write to a view of one": lambda x: x[0].mul_(2),
    "a write to its data": lambda x: x.data.mul_(2),
    "out=": lambda x: torch.mul(x, 2, out=x),
    "an item": lambda x: [operator.setitem(x, 0, 5.0), x][1],
    "random numbers": lambda x: x.add_(torch.rand(3)),
    "a write ahead of a branch": lambda x: x.add_(1) if x.sum() > 0 else x.sub_(1),
    "a write behind a branch": lambda x: x * 2 if x.mul_(-1).sum() > 0 else x - 1,
}


@pytest.mark.parametrize("what", BREAKS)
def test_what_is_not_declared_ends_the_capture(what):
    function, reason = BREAKS[what]
    fast = compiled(function)
    for _ in range(2):
        x, y = torch.ones(3), torch.ones(3)
        with torch.enable_grad() if what == "a global setting" else torch.no_grad():
            result, expected = fast(x), function(y)
        assert torch.equal(result, expected) if expected is not None else result is None
        assert torch.equal(x, y)
    assert any(reason in each for each in weft.stats(fast)["breaks"])


@pytest.mark.parametrize("what", EFFECTS)
def test_writes_and_random_numbers_are_eagers(what):
    """Also of calls that leave the program's path half way: they begin anew."""
    fast = compiled(EFFECTS[what])
    for number in range(5):
        x, y = (torch.ones(3) * (-1) ** (number // 2) for _ in range(2))
        version = x._version
        torch.manual_seed(number)
        result, state = fast(x), torch.get_rng_state()
        torch.manual_seed(number)
        expected = EFFECTS[what](y)
        assert torch.equal(result, expected) and torch.equal(x, y)
        assert torch.equal(state, torch.get_rng_state())
        assert (result is x) == (expected is y) and version <= x._version
    assert weft.stats(fast)["hits"] > 0


def test_attributes_and_entries_are_set():
    """Also where a path is left behind the write, and by a class's own __setattr__."""

    class Keeps(nn.Module):
        def __init__(self, table):
            super().__init__()
            self.last, self.table, self.positive = None, table, 0

        def forward(self, x):
            self.last = x * 2
            self.table["sum"] = self.last.sum()
            self.positive = 1 if x.sum() > 0 else 2
            return self.last + self.positive

    model, twin = Keeps({"sum": 0}), Keeps({"sum": 0})
    fast = compiled(model)
    for number in range(8):
        x = torch.ones(3) * (-1) ** (number // 2)
        assert torch.equal(fast(x), twin(x)) and torch.equal(model.last, twin.last)
        assert torch.equal(model.table["sum"], twin.table["sum"])
        assert model.positive == twin.positive and list(vars(model)) == list(vars(twin))
    assert weft.stats(fast)["hits"] > 0


def test_a_value_that_changes_at_each_call_is_not_captured_for_ever():
    class Counts:
        calls = 0

    counts = Counts()

    def f(x):
        counts.calls += 1
        return x * counts.calls

    fast, x = compiled(f), torch.ones(3)
    for number in range(1, 40):
        assert fast(x).sum() == 3 * number and counts.calls == number
    assert weft.stats(fast)["captures"] < 20


def test_batch_norm_trains():
    model, twin = (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)) for _ in range(2))
    twin.load_state_dict(model.state_dict())
    fast = compiled(model)
    for _ in range(4):
        x = torch.randn(5, 3)
        fast(x).sum().backward()
        twin(x).sum().backward()
        for mine, other in zip(model.parameters(), twin.parameters()):
            assert torch.equal(mine.grad, other.grad)
        assert all(map(torch.equal, model.state_dict().values(), twin.state_dict().values()))
    assert is_whole(fast) and weft.stats(fast)["hits"] == 3


def test_an_error_is_the_programs_own():
    def f(x, number):
        if number < 0:
            raise KeyError("negative")
        return x * number

    fast, x = compiled(f), torch.ones(3)
    with pytest.raises(KeyError, match="negative"):
        fast(x, -1)
    assert fast(x, 2).sum() == 6
    with pytest.raises(KeyError, match="negative"):
        fast(x, -1)
    with pytest.raises(RuntimeError, match="size"):
        compiled(lambda x: x @ torch.ones(5))(x)


def test_threads_observe_apart():
    model = Layers()
    functions = [compiled(lambda x, k=k: model(x * k)["out"]) for k in range(4)]
    x, wrong = torch.randn(3, 4), []

    def work(number):
        for _ in range(5):
            if not torch.equal(functions[number](x), model(x * number)["out"]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and [weft.stats(each)["breaks"] for each in functions] == [[]] * 4


def test_objects_are_let_go():
    """References are counted: as many objects live after captures as before."""
    model, x = Layers(), torch.randn(3, 4)

    def once():
        observed(lambda x: [model(x), {"k": (x, x.shape)}, [str(k) for k in range(3)]], x)

    once()
    gc.collect()
    before = len(gc.get_objects())
    counts = [sys.getrefcount(each) for each in (model, x, model.layers[0].weight)]
    shared = [sys.getrefcount(each) for each in (2.5, "relu")]  # others may hold these, too
    for _ in range(20):
        once()
    gc.collect()
    assert len(gc.get_objects()) - before < 20
    assert counts == [sys.getrefcount(each) for each in (model, x, model.layers[0].weight)]
    now = [sys.getrefcount(each) for each in (2.5, "relu")]
    assert all(abs(one - other) < 20 for one, other in zip(shared, now, strict=True))


def test_a_cycle_through_a_program_is_collected():
    class Holder:
        pass

    def make():
        holder = Holder()
        holder.factor = 2.0
        holder.fast = compiled(lambda x: x * holder.factor)
        holder.fast(torch.ones(3))
        assert is_whole(holder.fast)
        return weakref.ref(holder)

    gone = make()
    gc.collect()
    assert gone() is None


def test_what_cannot_be_combined_is_refused():
    with pytest.raises(errors.ConfigError):
        weft.compile(lambda x: x, capture="export", backend="eager")
    with pytest.raises(errors.NotCompiledError, match="print"):
        warnings.simplefilter("ignore")
        fast = weft.compile(lambda x: print({1}) or x, capture="observe", backend="eager",
                            fullgraph=True)  # fmt: skip
        fast(torch.ones(3))


class OwnNames(nn.Module):
    def reset(self):
        raise AssertionError("the user's own")

    ir = explain = graph = profile = visualize = artifact_path = reset

    def forward(self, x):
        return x + 1


def test_weft_asks_no_method_of_the_users():
    compiled, x = weft.compile(OwnNames(), backend="eager"), torch.ones(3)
    for _ in range(2):
        assert compiled(x).tolist() == [2, 2, 2]
    weft.reset(compiled)
    compiled(x)
    assert weft.stats(compiled)["captures"] == 2
    for ask in (weft.ir, weft.graph, weft.artifact_path, weft.explain, weft.profile):
        with pytest.raises(weft.errors.Error, match="its calls are observed"):
            ask(compiled)
