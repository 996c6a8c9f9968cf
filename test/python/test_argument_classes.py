# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named tuples, dataclasses and objects in slots have classes, and these have code."""

import collections
import dataclasses

import pytest
import torch

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

FACTOR = 2.0


class Pair(collections.namedtuple("Pair", "left right")):
    gain = 3.0

    def both(self):
        return (self.left + self.right) * self.gain * FACTOR


Plain = collections.namedtuple("Plain", "left right")


@dataclasses.dataclass(eq=False)
class Sized:
    x: torch.Tensor
    sizes = [1]


@dataclasses.dataclass(eq=False)
class Batch:
    x: torch.Tensor

    def twice(self):
        return self.x * 2


@dataclasses.dataclass(eq=False)
class Fields:
    x: torch.Tensor
    weight: float = 1.0


class Slotted:
    __slots__ = ("bias", "name")

    def __init__(self, bias):
        self.bias, self.name = bias, "a"

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


SLOTTED = Slotted(1.0)


def program(pair, batch):
    return pair.both() + batch.twice() + SLOTTED.bias


def of_fields(pair, batch):
    return pair.left * getattr(pair, "scale", 1.0) + batch.x * getattr(batch, "scale", 1.0)


def test_code_of_arguments_classes_is_watched(monkeypatch):
    compiled = weft.compile(program)
    pair, batch = Pair(torch.ones(3), torch.rand(3)), Batch(torch.rand(3))

    def agrees():
        torch.testing.assert_close(compiled(pair, batch), program(pair, batch), rtol=0, atol=0)

    agrees(), agrees()
    assert weft.stats(compiled)["hits"]
    monkeypatch.setattr(Pair, "gain", 5.0)
    agrees()
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    agrees()
    monkeypatch.setattr(Batch, "twice", lambda self: self.x - 1)
    agrees()
    monkeypatch.setattr(SLOTTED, "bias", 9.0)
    agrees()


def test_attributes_beside_fields_are_seen():
    compiled = weft.compile(of_fields)
    pair, batch = Plain(torch.ones(3), torch.rand(3)), Fields(torch.rand(3))
    compiled(pair, batch)
    compiled(pair, batch)
    assert weft.stats(compiled)["hits"] and not weft.stats(compiled)["breaks"]
    Plain.scale = 4.0
    try:
        assert torch.equal(compiled(pair, batch), of_fields(pair, batch))
    finally:
        del Plain.scale
    batch.scale = 5.0
    assert torch.equal(compiled(pair, batch), of_fields(pair, batch))
    assert torch.equal(compiled(pair, Fields(batch.x)), of_fields(pair, Fields(batch.x)))


def test_containers_of_a_class_are_seen():
    compiled = weft.compile(lambda sized: sized.x * len(sized.sizes))
    x = torch.rand(3)
    for count in (1, 1, 2):
        Sized.sizes[:] = [1] * count
        assert torch.equal(compiled(Sized(x)), x * count)


DEFAULTS = {"scale": 2.0}


def test_whether_containers_are_one():
    def asks(x, options, others):
        if options is DEFAULTS:
            return x * 3
        return x * options["scale"] if options is others else x

    compiled = weft.compile(asks)
    x, options = torch.rand(3), {"scale": 2.0}
    for first, second in [({**options}, {**options})] * 2 + [(options,) * 2, (DEFAULTS, options)]:
        assert torch.equal(compiled(x, first, second), asks(x, first, second))


@torch.enable_grad()
def test_a_dataclass_as_the_argument_of_a_program_that_another_has_verified():
    @dataclasses.dataclass
    class Node:
        value: torch.Tensor
        children: list

    layer = torch.nn.Linear(3, 3)

    def encode(node):
        return torch.tanh(layer(node.value) + sum(encode(each) for each in node.children))

    tree = Node(torch.ones(3), [Node(torch.zeros(3), [])])
    for _ in range(2):
        compiled = weft.compile(lambda node: encode(node))
        for _ in range(3):
            assert torch.allclose(compiled(tree), encode(tree))
