# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: descriptors, metaclasses and what else makes objects."""

import collections
import types
from typing import NamedTuple

import pytest
import torch
from observing import compiled, values, whole

import weft
from weft.observe.declared import _torch_functions

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


class Doubling:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, kind=None):
        return self if owner is None else getattr(owner, self.name, 0) * self.factor

    def __set__(self, owner, value):
        setattr(owner, self.name, value * 2)

    def __delete__(self, owner):
        delattr(owner, self.name)

    factor = 1


class Described:
    value = Doubling()


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.extra = cls.extra
        return made


class Made(metaclass=Meta):
    extra = 1

    def __init__(self, value):
        self.value = value


class Pair(NamedTuple):
    a: torch.Tensor
    b: int = 2


def sets_by_descriptor(x):
    made = Described()
    made.value = 3
    seen = made.value
    del made.value
    return x * seen + made.value


def calls_a_metaclass(x):
    made = Made(3)
    return x * made.value + made.extra


def replaces_fields(x):
    pair = Pair(x, 3)
    return (
        pair._replace(b=4).b * x,
        pair._replace(a=x * 2),
        Pair._make([x, 5]).b,
        pair._asdict()["b"],
    )


def counts(x):
    counter = collections.Counter([1, 1, 2])
    counter.update("ab")
    return x * counter[1] + counter["z"] + len(counter)


def makes_a_namespace(x):
    made = types.SimpleNamespace(a=2, y=x * 2)
    made.b = made.a + 1
    return made, made.y * made.b


def gives_several_outputs(x):
    most, where = torch.empty(()), torch.empty((), dtype=torch.long)
    torch.max(x, 0, out=(most, where))
    return most, where


def joins_a_map(x):
    return x * len("x".join(map(str, x.shape)))


FUNCTIONS = [
    sets_by_descriptor,
    calls_a_metaclass,
    replaces_fields,
    counts,
    makes_a_namespace,
    gives_several_outputs,
    joins_a_map,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_objects_are_made(function):
    fast = compiled(function)
    for i in range(4):
        found, expected = fast(values() + i), function(values() + i)
        assert str(found) == str(expected) and type(found) is type(expected)
    assert whole(fast)


def test_an_object_and_its_attributes_are_given():
    class Holder:
        pass

    def f(x):
        made = Holder()
        made.a = x * 2
        return made, made.__dict__

    fast = compiled(f)
    for _ in range(3):
        made, attributes = fast(values())
        attributes["b"] = 3
        assert made.b == 3 and attributes is vars(made)


def test_descriptors_and_metaclasses_are_guarded(monkeypatch):
    for function in (sets_by_descriptor, calls_a_metaclass):
        fast = compiled(function)
        for _ in range(2):
            fast(values())
        monkeypatch.setattr(Doubling, "factor", 5)
        monkeypatch.setattr(Made, "extra", 5)
        for _ in range(2):
            assert torch.equal(fast(values()), function(values()))
        monkeypatch.setattr(
            Doubling, "__set__", lambda self, owner, value: setattr(owner, "_value", 1)
        )
        monkeypatch.setattr(
            Meta, "__call__", lambda cls, *args: types.SimpleNamespace(value=9, extra=9)
        )
        for _ in range(2):
            assert torch.equal(fast(values()), function(values()))
        monkeypatch.undo()
        for _ in range(2):
            assert torch.equal(fast(values()), function(values()))


def test_several_outputs_of_the_program_itself():
    most, where = torch.zeros(()), torch.zeros((), dtype=torch.long)

    def f(x):
        torch.max(x, 0, out=(most, where))
        return most * 2

    def g(x):
        torch.max(x, 0, out=(most, torch.empty((), dtype=torch.long)))
        return most * 2

    for function in (f, g):
        fast = compiled(function)
        for i in range(4):
            assert fast(values() + i).item() == (3 + i) * 2 and most.item() == 3 + i
        assert whole(fast)


def test_lists_of_tensors_are_written():
    averages, steps = [torch.zeros(3), torch.zeros(2)], [torch.tensor(0.0)]

    @torch.no_grad()
    def average(x, y):
        torch._foreach_lerp_(averages, [x, y], 0.5)
        torch._foreach_add_(steps, 1)
        assert torch._foreach_neg_(own := [x * 2]) is own
        return own[0] + averages[0]

    fast = compiled(average)
    for i in range(4):
        x, y = torch.full((3,), 2.0, requires_grad=True), torch.ones(2)
        before = averages[0].clone()
        found = fast(x, y)
        assert torch.equal(averages[0], before.lerp(x, 0.5)) and steps[0].item() == i + 1
        assert torch.equal(found, averages[0] - 2 * x) and averages[1][0] == 1 - 0.5 ** (i + 1)
    assert whole(fast)


def writes_beyond_the_first(name):
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return False
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
    return any(
        argument.alias_info is not None and argument.alias_info.is_write
        for schema in schemas
        for argument in schema.arguments[1:]
        if not argument.kwarg_only
    )


def test_declared_operations_write_their_first_argument_alone():
    """What a replay has not copied it would write once more."""
    assert writes_beyond_the_first("_fused_adam_")
    kinds = {function.__name__: kind for function, kind in _torch_functions()}
    writing = [name for name, kind in kinds.items() if kind in ("operation", "in place")]
    assert not [name for name in writing if writes_beyond_the_first(name)]


def test_undeclared_writes_are_made_once():
    lowest, highest, averages, squares, mean, variance = (torch.zeros(1) for _ in range(6))
    settings = dict(lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8)
    one = torch.tensor([1])

    @torch.no_grad()
    def step(x):
        moved, counts, scale, zero = x[:1].clone(), [torch.tensor(1.0)], torch.ones(1), one - 1
        gradients = [torch.ones(1)]
        torch._fused_adam_(
            [moved], gradients, [averages], [squares], [], counts, **settings, amsgrad=False,
            maximize=False,
        )  # fmt: skip
        torch.native_batch_norm(x[:, None], None, None, mean, variance, True, 0.5, 1e-5)
        return moved + torch.fused_moving_avg_obs_fake_quant(
            x, one, one, lowest, highest, scale, zero.int(), 0.5, 0, 255, 0, False, False
        )

    fast = weft.compile(step)
    for i in range(3):
        fast(values())
        assert averages.item() == pytest.approx(1 - 0.9 ** (i + 1))
        assert mean.item() == pytest.approx(values().mean().item() * (1 - 0.5 ** (i + 1)))
        assert highest.item() == pytest.approx(values().max().item() * (1 - 0.5 ** (i + 1)))


def test_statistics_are_updated_once():
    fast = weft.compile(lambda x, *given: torch.batch_norm_update_stats(x, *given, 0.5))
    for _ in range(2):
        mine, theirs = ([torch.zeros(3), torch.ones(3)] for _ in range(2))
        x = torch.randn(5, 3)
        expected = torch.batch_norm_update_stats(x, *theirs, 0.5)
        torch.testing.assert_close(fast(x, *mine), expected)
        torch.testing.assert_close(mine, theirs)
    (why,) = weft.stats(fast)["breaks"]
    assert "changes its arguments" in why  # a program would have them changed twice


HIDING = torch.library.Library("hiding", "DEF")
HIDING.define("count(Tensor x, Tensor calls) -> Tensor")
HIDING.impl("count", lambda x, calls: calls.data.add_(1) * 0 + x, "CPU")
HIDING.impl("count", lambda x, calls: torch.empty_like(x), "Meta")


@pytest.mark.parametrize("settings", [{}, {"capture": "observe", "backend": "eager"}], ids=str)
@pytest.mark.usefixtures("verified")
def test_what_an_operator_writes_unsaid_is_written_once(settings):
    calls = torch.zeros(3)
    fast = weft.compile(lambda x: torch.ops.hiding.count(x, calls) + 1, **settings)
    for number in range(3):
        assert fast(torch.ones(3)).tolist() == [2, 2, 2]
        assert calls.tolist() == [number + 1] * 3
    assert "does not name" in weft.stats(fast)["breaks"][0]
