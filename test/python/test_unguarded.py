# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the fuzzer of test/capture found that a program read and no guard watched, kind by kind."""

import abc
import collections
import dataclasses
import functools
import math
import os
import sys
import threading
import traceback
import types
import warnings
import weakref

import numpy
import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from agreeing import agrees, called
from torch import nn

import weft

pytestmark = [
    pytest.mark.usefixtures("no_grad", "verified"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]


def test_modules_in_a_list():
    layers = [nn.Linear(3, 3), nn.Linear(3, 3)]

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    x = torch.randn(2, 3)
    compiled = called(f, x)
    layers[0].weight.add_(1)
    agrees(compiled, f, x)
    layers.reverse()
    agrees(compiled, f, x)
    layers[0].weight = nn.Parameter(torch.ones(3, 3))
    agrees(compiled, f, x)
    assert not weft.stats(compiled)["breaks"]


def test_a_parameter_in_a_view_of_a_list():
    weight = nn.Parameter(torch.ones(4))
    parts = [weight.detach()[1:]]

    def f(x):
        return x * parts[0]

    x = torch.randn(3)
    compiled = called(f, x)
    weight.add_(1)
    agrees(compiled, f, x)


def test_whether_a_tensor_has_a_gradient():
    weight = nn.Parameter(torch.ones(3))

    def f(x):
        return x * 2 if weight.grad is None else x * 3

    x = torch.randn(3)
    compiled = called(f, x)
    weight.grad = torch.ones(3)
    agrees(compiled, f, x)


def test_inference_mode_within():
    def f(x):
        with torch.inference_mode():
            return x * 2

    compiled = called(f, torch.ones(3))
    assert all(compiled(torch.ones(3)).is_inference() for _ in range(3))


@pytest.mark.parametrize("decorated", [True, False])
def test_inference_mode_around_is_no_break(decorated):
    def f(x):
        with torch.inference_mode():
            return x * 2

    compiled = weft.compile(torch.inference_mode()(f) if decorated else f)
    with torch.inference_mode():
        assert all(compiled(torch.ones(3)).is_inference() for _ in range(3))
    assert not weft.stats(compiled)["breaks"]


def test_modes_that_a_call_leaves():
    def f(x):
        torch.set_grad_enabled(True)
        return x * 2

    compiled = weft.compile(f)
    for _ in range(4):
        with torch.no_grad():
            compiled(torch.ones(3))
            assert torch.is_grad_enabled()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "owner, name, function",
    [
        (torch, "relu", nn.ReLU()),
        (torch, "relu", lambda x: F.relu(x)),
        (torch.special, "expit", lambda x: torch.special.expit(x)),
        (torch.linalg, "norm", lambda x: x * torch.linalg.norm(x)),
        (math, "sqrt", lambda x: x * math.sqrt(4)),
    ],
)
def test_functions_of_libraries_are_patched(owner, name, function, monkeypatch):
    x, old = torch.randn(3), getattr(owner, name)
    compiled = called(function, x)
    monkeypatch.setattr(owner, name, lambda *args, **kwargs: old(*args, **kwargs) * 2)
    agrees(compiled, function, x)


def test_functions_in_containers():
    def first(x, scale=2.0):
        return x * scale

    def make(offset):
        return lambda x: x + offset[0]

    offset = [1.0]
    table = {"functions": [first, make(offset)]}

    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = table

        def forward(self, x):
            return self.table["functions"][0](x) + self.table["functions"][1](x)

    x = torch.randn(3)
    for target in (Calls(), lambda x: table["functions"][0](x) + table["functions"][1](x)):
        compiled = called(target, x)
        first.__defaults__ = (first.__defaults__[0] + 1,)
        agrees(compiled, target, x)
        offset[0] += 1
        agrees(compiled, target, x)
        first.__code__ = (lambda x, scale=2.0: x - scale).__code__
        agrees(compiled, target, x)
        assert not weft.stats(compiled)["breaks"]


class Settings:
    def __init__(self):
        self.scale = 2.0


def test_objects_of_a_class():
    class Holder:
        offset = torch.ones(3)
        settings = Settings()
        layer = nn.Linear(3, 3)

    def f(x):
        return Holder.layer(x + Holder.offset) * Holder.settings.scale

    x = torch.randn(3)
    compiled = called(f, x)
    Holder.offset.data = torch.ones(3) * 2
    agrees(compiled, f, x)
    Holder.settings.scale = 3.0
    agrees(compiled, f, x)
    Holder.layer.weight.add_(1)
    agrees(compiled, f, x)


@pytest.mark.parametrize("argument", [{1, 2}, object(), torch.ones(3).to_sparse()])
def test_errors_have_no_context_of_ours(argument):
    def f(x):
        raise ValueError("of the user's")

    compiled = weft.compile(f)
    for _ in range(3):
        with pytest.raises(ValueError) as raised:
            compiled(argument)
        assert raised.value.__context__ is None
        assert "Declined" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("where", ["closure", "argument", "attribute"])
def test_containers_that_are_returned_are_those_given(where):
    kept, given = [1.0], [torch.ones(3)]

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = {"inner": kept}

        def forward(self, x, xs):
            return {"closure": kept, "argument": xs, "attribute": self.kept}[where], x * 2

    module = Keeps()
    expected = {"closure": kept, "argument": given, "attribute": module.kept}[where]
    compiled = weft.compile(module)
    for _ in range(3):
        assert compiled(torch.ones(3), given)[0] is expected


def test_results_that_require_gradients():
    compiled = weft.compile(lambda x: (x * 2).requires_grad_())
    assert all(compiled(torch.ones(3)).requires_grad for _ in range(3))


def test_what_a_partial_holds():
    def scale(x, factor, bias):
        return x * factor + bias

    partial = functools.partial(scale, bias=1.0, factor=2.0)
    x = torch.randn(3)
    for target in (partial, lambda x: partial(x) * 2):
        compiled = called(target, x)
        partial.keywords["bias"] += 1
        agrees(compiled, target, x)
        scale.__code__ = (lambda x, factor, bias: x - factor - bias).__code__
        agrees(compiled, target, x)
        assert not weft.stats(compiled)["breaks"]


class Thing:
    scale = 2.0


def test_what_a_weak_reference_finds():
    things = [Thing()]
    reference = weakref.ref(things[0])

    def f(x):
        thing = reference()
        return x if thing is None else x * thing.scale

    x = torch.randn(3)
    compiled = called(f, x)
    things[0].scale = 5.0
    agrees(compiled, f, x)
    things.clear()
    assert torch.equal(compiled(x), x)


@pytest.mark.parametrize("view", [dict.values, dict.keys, dict.items, types.MappingProxyType])
def test_views_of_dicts(view):
    table = {2.0: 3.0}
    kept = view(table)

    def f(x):
        return x * len(kept)

    x = torch.randn(3)
    compiled = called(f, x)
    table[5.0] = 7.0
    agrees(compiled, f, x)


def test_an_environment_variable_by_a_computed_name(monkeypatch):
    name = "_".join(["WEFT", "TEST", "SCALE"])

    def f(x):
        return x * float(os.getenv(name, "2"))

    x = torch.randn(3)
    compiled = called(f, x)
    for value in ("5", "7"):
        monkeypatch.setenv(name, value)
        agrees(compiled, f, x)


def test_the_recursion_limit():
    def f(x):
        return x * sys.getrecursionlimit()

    x = torch.randn(3)
    compiled, old = called(f, x), sys.getrecursionlimit()
    sys.setrecursionlimit(old + 10)
    try:
        agrees(compiled, f, x)
    finally:
        sys.setrecursionlimit(old)


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor | None = None
    scale: float = 2.0


def test_dataclasses_stay_what_they_are_to_torch():
    def f(pair, x):
        return Pair(pair.left * pair.scale, None, 3.0), {"inner": Pair(x)}

    compiled = weft.compile(f)
    for _ in range(3):
        found, inner = compiled(Pair(torch.ones(3)), torch.zeros(3))
        assert type(found) is Pair and found.left[0] == 2 and found.right is None
        assert found.scale == 3.0 and type(inner["inner"]) is Pair
    assert Pair not in pytree.SUPPORTED_NODES
    assert weft.stats(compiled)["graphs"] == 1 and not weft.stats(compiled)["breaks"]
    assert compiled(Pair(torch.ones(3), scale=5.0), torch.zeros(3))[0].left[0] == 5
    assert compiled(Pair(torch.ones(3), torch.ones(3)), torch.zeros(3))[0].left[0] == 2


def test_a_warning_is_heard_on_each_call():
    def f(x):
        warnings.warn("an old way", UserWarning, stacklevel=1)
        return x * 2

    compiled = weft.compile(f)
    for _ in range(4):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            assert compiled(torch.ones(3))[0] == 2
        assert [str(each.message) for each in heard if each.category is UserWarning]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="an old way"):
            compiled(torch.ones(3))
    assert weft.stats(compiled)["graphs"] == 1 and not weft.stats(compiled)["breaks"]


class NamedByItsMethod(nn.Module):
    def __init__(self, method):
        super().__init__()
        self.method, self.table = method, {"method": method}

    def forward(self, x):
        names = self.method.__name__, self.table["method"].__name__
        return x + names.count("uniform")


class Draws:
    def uniform(self):
        pass

    def normal(self):
        pass


@pytest.mark.parametrize("kind", [Draws, numpy.random.RandomState])
def test_methods_of_objects(kind):
    """A bound method has its function's attributes, and of Cython's nothing else to tell it by."""
    owner = kind()
    compiled = weft.compile(module := NamedByItsMethod(owner.uniform))
    x = torch.zeros(2)
    for _ in range(2):
        assert compiled(x).tolist() == [2, 2]
    module.method = owner.normal
    for _ in range(2):
        assert compiled(x).tolist() == [1, 1]
    module.table["method"] = owner.normal
    for _ in range(2):
        assert compiled(x).tolist() == [0, 0]


def test_the_order_of_an_ordered_dict():
    steps = collections.OrderedDict(double=2.0, triple=3.0)

    def f(x):
        for by in steps.values():
            x = x * by + by
        return x

    compiled = called(f, torch.ones(3))
    steps.move_to_end("double")
    agrees(compiled, f, torch.ones(3))
    steps.move_to_end("triple")
    agrees(compiled, f, torch.ones(3))
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]


class Locked(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock, self.unused = threading.Lock(), threading.RLock()

    def forward(self, x):
        with self.lock:
            return x * 2


def test_a_lock_is_taken():
    model = Locked()
    compiled = called(model, torch.ones(3))
    order = []
    with model.lock:
        caller = threading.Thread(target=lambda: order.append(compiled(torch.ones(3))))
        caller.start()
        caller.join(0.1)
        order.append("released")
    caller.join()
    assert order[0] == "released" and order[1].tolist() == [2, 2, 2]
    assert "lock" in weft.stats(compiled)["breaks"][0]


def test_a_lock_that_no_code_takes():
    model = Locked()
    model.forward = lambda x: x * 3
    assert not weft.stats(called(model, torch.ones(3)))["breaks"]


def test_attributes_that_the_user_sets_on_tensors():
    held, weight, nested = types.SimpleNamespace(w=torch.ones(3)), torch.ones(3), [torch.ones(3)]
    weight.scale, held.w.scale, nested[0].scale = 2, 3, 5

    def f(x):
        return x * weight.scale * held.w.scale * nested[0].scale

    x = torch.randn(3)
    compiled = called(f, x)
    assert weft.stats(compiled)["hits"] > 0
    for tensor in (weight, held.w, nested[0]):
        tensor.scale += 2
        agrees(compiled, f, x)
    weight.itself = weight
    agrees(compiled, f, x)


def test_classes_registered_with_abstract_ones():
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    class Derived(Shape):
        pass

    class One:
        pass

    class Other:
        pass

    one, other, standard = One(), Other(), collections.abc

    def f(x):
        x = x * 2 if isinstance(one, Shape) else x * 3
        return x + 1 if isinstance(other, standard.Sequence) else x + 2

    x = torch.randn(3)
    compiled = called(f, x)
    assert weft.stats(compiled)["hits"] > 0
    Derived.register(One)
    agrees(compiled, f, x)
    collections.abc.MutableSequence.register(Other)
    agrees(compiled, f, x)


def test_what_runs_eagerly_as_it_has_no_guard():
    class Base:
        pass

    class One(Base):
        scale = 2

    def subclasses(x):
        for each in Base.__subclasses__():
            x = x * each.scale
        return x

    def threads(x):
        return x * torch.get_num_threads()

    x, before = torch.randn(3), torch.get_num_threads()
    compiled = called(subclasses, x)
    One.scale = 3
    agrees(compiled, subclasses, x)
    made = type("Two", (Base,), {"scale": 5})
    agrees(compiled, subclasses, x)
    assert made in Base.__subclasses__()
    compiled = called(threads, x)
    try:
        torch.set_num_threads(before + 1)
        agrees(compiled, threads, x)
    finally:
        torch.set_num_threads(before)
