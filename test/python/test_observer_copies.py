# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: copies, and closures that a call gives."""

import collections
import copy

import pytest
import torch
from observing import agree, compiled, values, whole
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


# Deep copies.


def test_a_deep_copy_of_a_structure():
    def f(x):
        y = x * 2
        made = copy.deepcopy({"a": [1, y], "b": (y, "text"), "c": [y]})
        made["a"][1].add_(1)
        return made, y

    fast = compiled(f)
    for i in range(4):
        made, y = fast(values() + i)
        assert torch.equal(y, (values() + i) * 2) and torch.equal(made["a"][1], y + 1)
        assert made["a"][1] is made["b"][0] is made["c"][0] and made["a"][1] is not y
    assert whole(fast)


def test_deep_copies_of_arguments_that_are_one_object():
    def f(x, y):
        a, b = copy.deepcopy([x, y])
        a.add_(1)
        return a, b

    fast, one = compiled(f), values()
    for x, y in ((one, values()), (one, values()), (one, one), (one, one), (values(), one)):
        found, expected = fast(x, y), f(x, y)
        assert str(found) == str(expected) and (found[0] is found[1]) == (x is y)


def test_deep_copies_of_arguments_that_share_memory():
    def f(x, y):
        a, b = copy.deepcopy([x, y])
        a.add_(1)
        return a, b

    fast, memory = compiled(f), values(6)
    for x, y in ((values(6), values(3)), (values(6), values(3)), (memory, memory[:3])):
        for _ in range(2):
            assert str(fast(x, y)) == str(f(x, y))


@pytest.mark.parametrize("change", ["grad", "attribute", "hook"])
def test_a_tensor_that_has_more_to_it(change):
    def f(x):
        return copy.deepcopy(x)

    fast, x = compiled(f), values().requires_grad_()
    for _ in range(3):
        assert torch.equal(fast(x), x)
    if change == "grad":
        x.grad = torch.ones(3)
    elif change == "attribute":
        x.note = [1]
    else:
        x.register_hook(lambda grad: grad * 2)
    for _ in range(2):
        found = fast(x)
        assert torch.equal(found, x) and (change != "grad" or found.grad is not None)
        assert change != "attribute" or (found.note == [1] and found.note is not x.note)


def test_the_notes_of_a_copy_are_no_values():
    def f(x):
        notes = {}
        made = copy.deepcopy([x * 2], notes)
        return made[0] * (list(notes)[0] % 7 + 1), len(notes)

    def g(x):
        notes = {}
        copy.deepcopy([x * 2], notes)
        return list(notes.values())[-1]

    for function in (f, g):
        fast = compiled(function)
        for _ in range(3):
            fast(values())  # of addresses nobody knows what they are; it must not fail


def test_a_parameter_is_copied():
    layer = nn.Linear(3, 3)

    def f(x):
        return x @ copy.deepcopy(layer.weight), layer.weight

    with torch.no_grad():
        fast = compiled(f)
        for _ in range(3):
            assert torch.equal(fast(values())[0], f(values())[0])
            layer.weight.add_(1)
        assert whole(fast)
    fast = compiled(lambda x: copy.deepcopy(layer.weight))
    for _ in range(3):
        found = fast(values())
        assert type(found) is nn.Parameter and found.requires_grad and found is not layer.weight
        assert torch.equal(found, layer.weight)
    assert whole(fast)


# Closures.


def test_a_closure_is_given():
    def f(x, scale=2):
        y = x * scale
        count = 0

        def add(z, more=scale):
            nonlocal count
            count += 1
            return z + y + more * count

        return add, lambda: (count, y)

    fast = compiled(f)
    for i in range(4):
        found, expected = fast(values() + i), f(values() + i)
        for _ in range(2):
            assert torch.equal(found[0](values()), expected[0](values()))
        assert str(found[1]()) == str(expected[1]()) and found[1]()[0] == 2
        assert found[0].__name__ == "add" and found[0].__qualname__ == expected[0].__qualname__
        assert found[0].__defaults__ == (2,) and found[0].__module__ == expected[0].__module__
        assert found[0].__globals__ is expected[0].__globals__
    assert whole(fast)


def test_closures_of_two_calls_are_apart():
    def f(x):
        items = [x * 2]
        return items, lambda: items

    fast = compiled(f)
    first, second, third = (fast(values()) for _ in range(3))
    assert third[0] is third[1]() and third[0] is not second[0] is not first[0]
    third[0].append(1)
    assert len(second[1]()) == 1 and len(third[1]()) == 2


@pytest.mark.parametrize("kind", ["annotated", "keyword", "attribute", "doc", "recursive", "kept"])
def test_closures_with_more_to_them(kind):
    kept = []

    def f(x):
        if kind == "annotated":

            def inner(z: int) -> int:
                return z + x
        elif kind == "keyword":

            def inner(z, *, w=2):
                return z + x + w
        elif kind == "recursive":

            def inner(z, depth=2):
                return inner(z + x, depth - 1) if depth else z
        else:

            def inner(z):
                """What it does."""
                return z + x

        if kind == "attribute":
            inner.note = 3
        elif kind == "doc":
            inner.__doc__ = "Something else."
        elif kind == "kept":
            kept.append(inner)
        return inner

    fast = compiled(f)
    for i in range(3):
        found, expected = fast(values() + i), f(values() + i)
        assert torch.equal(found(values()), expected(values()))
        assert found.__doc__ == expected.__doc__ and vars(found) == vars(expected)
        assert found.__annotations__ == expected.__annotations__
        assert found.__kwdefaults__ == expected.__kwdefaults__
    assert len(kept) == (6 if kind == "kept" else 0)
    assert all(
        torch.equal(kept[i](values()), kept[i + 1](values())) for i in range(0, len(kept), 2)
    )


# Deep copies of modules.


def layers():
    made = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Sequential(nn.BatchNorm1d(3))).eval()
    nn.init.ones_(made[0].weight)
    return made


@torch.no_grad()
def test_a_module_is_copied():
    model = layers()

    def f(x):
        made = copy.deepcopy(model)
        made[0].weight.add_(1)
        return made(x), model(x), made.training, len(list(made.parameters()))

    fast, x = compiled(f), torch.ones(2, 3)
    agree(fast, f, x)
    agree(fast, f, x)
    assert whole(fast)
    model[2][0].running_mean.add_(1)
    agree(fast, f, x)
    model[0].weight = nn.Parameter(torch.eye(3))
    agree(fast, f, x)
    model.append(nn.Tanh())
    agree(fast, f, x)
    model[0].register_forward_hook(lambda module, args, output: output * 2)
    agree(fast, f, x)
    model.train()
    agree(fast, f, x)
    assert model[2][0].num_batches_tracked == 4  # by its own calls


def test_a_copied_module_is_given_and_has_gradients():
    model = layers()
    model.shared = model[0].weight  # a name for the same one

    def f(x):
        made = copy.deepcopy(model)
        made(x).sum().backward()
        return made

    fast, x = compiled(f), torch.ones(2, 3)
    for _ in range(4):
        found, expected = fast(x), f(x)
        assert found is not model and found[0] is not model[0]
        assert found.shared is found[0].weight and found[0].weight is not model[0].weight
        assert list(vars(found)) == list(vars(expected)) and str(found) == str(expected)
        for (name, one), (other, two) in zip(
            found.state_dict().items(), expected.state_dict().items(), strict=True
        ):
            assert name == other and torch.equal(one, two)
        assert torch.equal(found[0].weight.grad, expected[0].weight.grad)
        assert model[0].weight.grad is None
    assert whole(fast)


def test_shallow_copies():
    model, items, ordered = layers(), {1, 2}, collections.OrderedDict(a=1)

    def f(x):
        made, some, other = copy.copy(model), copy.copy(items), copy.copy(ordered)
        made.tag = 2
        some.add(5)
        other["z"] = 1
        return x * made.tag * len(some) * len(other), made._modules is model._modules

    fast, x = compiled(f), torch.ones(2)
    agree(fast, f, x)
    agree(fast, f, x)
    assert whole(fast) and not hasattr(model, "tag") and items == {1, 2}
    items.add(7)
    agree(fast, f, x)
    ordered["b"] = 3
    agree(fast, f, x)


class Settings:
    def __init__(self):
        self.set, self.frozen = {1, 2}, frozenset([3])
        self.ordered = collections.OrderedDict(a=1, b=[2])
        self.deque = collections.deque([1, 2], maxlen=3)
        self.default = collections.defaultdict(list, {"q": [1]})
        self.dtype, self.device, self.size = torch.float32, torch.device("cpu"), torch.Size([1, 2])


def test_containers_of_c_are_copied():
    held = Settings()

    def f(x):
        made = copy.deepcopy(held)
        made.set.add(9)
        made.ordered["b"].append(7)
        made.deque.append(5)
        made.default["z"].append(1)
        made.default["q"].append(x)
        scale = len(made.set) * len(made.ordered["b"]) * sum(made.deque) * sum(made.size)
        return x * scale, made.ordered, list(made.deque), dict(made.default), made.frozen

    fast, x = compiled(f), torch.ones(2)
    agree(fast, f, x)
    agree(fast, f, x)
    assert whole(fast)
    for change in (
        lambda: held.set.add(3),
        lambda: held.ordered["b"].append(3),
        lambda: held.ordered.move_to_end("a"),
        lambda: held.deque.append(7),
        lambda: held.default["q"].append(5),
        lambda: held.default.update(r=[]),
        lambda: setattr(held, "size", torch.Size([3])),
        lambda: setattr(held, "frozen", frozenset([4])),
    ):
        change()
        agree(fast, f, x)
    assert held.set == {1, 2, 3} and held.default["q"] == [1, 5]


def test_how_a_class_is_copied_is_guarded():
    class Own:
        def __init__(self):
            self.a, self.b, self.copies = 2, 3, 0

        def __getstate__(self):
            self.copies += 1
            return (self.a, self.b)

        def __setstate__(self, state):
            self.b, self.a = state

    held = Own()

    def f(x):
        made = copy.deepcopy(held)
        return x * made.a + made.b

    fast, x = compiled(f), torch.ones(2)
    agree(fast, f, x)
    agree(fast, f, x)
    assert whole(fast) and held.copies == 8
    held.b = 7
    agree(fast, f, x)
    Own.__setstate__ = lambda self, state: vars(self).update(a=1, b=sum(state))
    agree(fast, f, x)
    Own.__getstate__ = lambda self: (4, 5)
    agree(fast, f, x)
