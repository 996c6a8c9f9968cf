# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What traced programs assume, and which of it a call does not meet, in the user's terms."""

import contextlib
from dataclasses import dataclass

import pytest
import torch

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

K = 2.0
OPTIONS = {"sizes": [1, 2]}


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.p = 0.1

    def forward(self, x):
        return self.linear(x) * self.p


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x, scale=1.0, given=None):
        for layer in self.layers:
            x = layer(x)
        return x * K * scale + OPTIONS["sizes"][0]


@contextlib.contextmanager
def changed(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def test_traced_programs_say_what_they_assume(monkeypatch):
    model, x = Model().eval(), torch.rand(2, 3)
    compiled = weft.compile(model)
    with pytest.raises(weft.errors.Error, match="nothing has been compiled"):
        weft.guards(compiled)
    compiled(x, 2.0, given={"a": [1]})
    assert weft.stats(compiled)["graphs"] == 1
    guards = weft.guards(compiled)
    for text in (
        *("x.shape == (2, 3)", "x.dtype == torch.float32", "x.stride() == (3, 1)"),
        *("scale == 2.0", "given['a'][0] == 1", "self.layers[1].p == 0.1", "K == 2.0"),
        *("OPTIONS['sizes'][1] == 2", "self.layers[0].linear.training == False"),
        *("self.layers[0].linear.weight.shape == (3, 3)", "gradients are not recorded"),
        *("self.__class__ is Model", "torch's settings as they were"),
    ):
        assert text in guards, text

    def why(x=x, scale=2.0, **given):
        return weft.why_miss(compiled, x, scale, given=given or {"a": [1]})

    assert why() is None
    assert why(torch.rand(4, 3)) == "x.shape == (2, 3), found (4, 3)"
    assert why(torch.rand(3, 2).t()) == "x.stride() == (3, 1), found (1, 2)"
    assert why(x.double()) == "x.dtype == torch.float32, found torch.float64"
    assert why(scale=3.0) == "scale == 2.0, found 3.0"
    assert why(scale=2) == "scale == 2.0, found 2"
    assert why(a=[2]) == "given['a'][0] == 1, found 2"
    assert why(b=[1]) == "given['a'] is there no more"
    assert weft.why_miss(compiled, x) == "the number of arguments == 2, found 1"
    with changed(model.layers[1], "p", 0.5):
        assert why() == "self.layers[1].p == 0.1, found 0.5"
    with changed(model.layers[1].linear, "training", True):
        assert why() == "self.layers[1].linear.training == False, found True"
    with changed(Block, "forward", lambda self, x: x):
        assert why().startswith("Block.forward is Block.forward, found ")
    block = model.layers[0]
    model.layers[0] = torch.nn.Identity()
    assert why() == "self.layers[0].__class__ is Block, found Identity"
    model.layers[0] = block
    with torch.enable_grad():
        assert why() == "a setting of torch has changed: grad_mode"
    monkeypatch.setitem(globals(), "K", 3.0)
    assert why() == "K == 2.0, found 3.0"
    monkeypatch.setitem(globals(), "K", 2.0)
    OPTIONS["sizes"].append(3)
    assert why() == "OPTIONS['sizes'][2] was not there"
    OPTIONS["sizes"].pop()
    assert why() is None


@dataclass(eq=False)
class Pair:
    left: torch.Tensor
    right: torch.Tensor


def test_sizes_of_a_range_and_arguments_that_are_one():
    compiled = weft.compile(
        lambda pair, n: pair.left * n + pair.right, shapes=None, automatic=False
    )
    left, right = torch.rand(3), torch.rand(3)
    compiled(Pair(left, right), 2)
    assert "pair.left.shape == (3,)" in compiled.guards()
    assert compiled.why_miss(Pair(left, left), 2).startswith("pair.right")
    ranged = weft.compile(lambda x: x * 2 + 1, shapes={"x": {0: weft.Range(2, 8)}})
    ranged(torch.rand(4, 3))
    assert weft.stats(ranged)["ranges"]
    assert "x.shape == (2…8, 3)" in ranged.guards()
    assert ranged.why_miss(torch.rand(7, 3)) is None
    assert ranged.why_miss(torch.rand(9, 3)) == "x.shape == (2…8, 3), found (9, 3)"


def test_the_program_that_was_made_last_answers():
    """Of traced and observed ones."""

    def either(x, observed):
        return x * 2 if observed is None or observed is OPTIONS else x

    compiled = weft.compile(either)
    compiled(torch.rand(3), None)
    assert "observed == None" in compiled.guards()
    compiled(torch.rand(3), {}), compiled(torch.rand(3), {})
    assert compiled.why_miss(torch.rand(3), {}) is None
    assert compiled.why_miss(torch.rand(4), {}) is not None
