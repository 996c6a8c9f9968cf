# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loaded artifacts: their arguments' names, and how often they prepare weights."""

import gc
import weakref

import pytest
import torch

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

nn = torch.nn


def load(target, *args, **kwargs):
    compiled = weft.compile(target)
    compiled(*args, **kwargs)
    return weft.load(compiled.artifact_path)


def names(loaded) -> list[str]:
    return [spec["name"] for spec in loaded.signature]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, batch, weight, *rest, mask=None, **options):
        x = self.layer(batch["x"][0]) * weight * self.weight
        return x + rest[0] + rest[1] + mask + options["shift"]


def test_names_are_the_users():
    x = [torch.randn(2, 3) for _ in range(6)]
    model = Model()
    call = {"mask": x[4], "shift": x[5]}
    loaded = load(model, {"x": (x[0],)}, x[1], x[2], x[3], **call)
    users = ["batch['x'][0]", "weight", "rest[0]", "rest[1]", "mask", "shift"]
    assert sorted(names(loaded)) == sorted(["layer.weight", "layer.bias", "m0.weight", *users])
    expected = model({"x": (x[0],)}, x[1], x[2], x[3], **call)
    tensors = dict(model.named_parameters())
    tensors["m0.weight"] = tensors.pop("weight")
    (result,) = loaded(**tensors, **dict(zip(users, x)))
    torch.testing.assert_close(result, expected)
    with pytest.raises(weft.errors.ArgumentError, match=r"argument \"batch\['x'\]\[0\]\""):
        loaded(**tensors, **dict(zip(users, [x[0].double(), *x[1:]])))


def test_names_of_a_functions_parameters():
    loaded = load(lambda left, right=None: left - right, torch.ones(3), right=torch.ones(3))
    assert names(loaded) == ["left", "right"]
    x, y = torch.randn(3), torch.randn(3)
    torch.testing.assert_close(loaded(right=y, left=x)[0], x - y)


def test_names_of_an_exported_programs_arguments():
    program = torch.export.export(nn.Linear(3, 2), (torch.randn(4, 3),))
    compiled = weft.from_exported_program(program)
    compiled(torch.randn(4, 3))
    assert names(weft.load(compiled.artifact_path)) == ["weight", "bias", "input"]


class Counting:
    def __init__(self, program):
        self.program, self.binds = program, 0
        self.has_bind = program.has_bind

    def bind(self, *call):
        self.binds += 1
        self.program.bind(*call)

    def run(self, *call):
        self.program.run(*call)


@pytest.fixture
def model():
    return nn.Conv2d(3, 16, 3).eval()


@pytest.fixture
def loaded(model):
    loaded = load(model, torch.randn(2, 3, 9, 9))
    loaded._program = Counting(loaded._program)
    assert loaded._program.has_bind
    return loaded


def check(loaded, weight, bias, binds):
    x = torch.randn(2, 3, 9, 9)
    (result,) = loaded(weight, bias, x)
    torch.testing.assert_close(result, nn.functional.conv2d(x, weight, bias))
    assert loaded._program.binds == binds


def test_weights_are_prepared_once(model, loaded):
    for _ in range(3):
        check(loaded, model.weight, model.bias, 1)
    check(loaded, model.weight.detach(), model.bias, 1)  # the same memory
    model.weight.mul_(2)
    check(loaded, model.weight, model.bias, 2)
    model.weight.data.add_(1)  # behind the version counter's back
    check(loaded, model.weight, model.bias, 3)
    other = torch.randn_like(model.weight)
    check(loaded, other, model.bias, 4)
    check(loaded, other, model.bias, 4)
    check(loaded, model.weight, model.bias, 5)


def test_weights_of_other_strides(model, loaded):
    check(loaded, model.weight, model.bias, 1)
    wide = torch.randn(16, 3, 3, 9)
    check(loaded, wide[..., ::3], model.bias, 2)
    check(loaded, model.weight.contiguous(memory_format=torch.channels_last), model.bias, 3)
    check(loaded, model.weight, model.bias, 4)


def test_prepared_weights_are_held_until_there_are_others(model, loaded):
    weight = torch.randn_like(model.weight)
    watched = weakref.ref(weight)
    check(loaded, weight, model.bias, 1)
    del weight
    gc.collect()
    # Other weights cannot come to lie where these did.
    assert watched() is not None
    check(loaded, model.weight, model.bias, 2)
    gc.collect()
    assert watched() is None


def test_a_failed_preparation_is_repeated(model, loaded):
    def fail(*_):
        raise MemoryError

    bind, loaded._program.bind = loaded._program.bind, fail
    with pytest.raises(MemoryError):
        loaded(model.weight, model.bias, torch.randn(2, 3, 9, 9))
    loaded._program.bind = bind
    check(loaded, model.weight, model.bias, 1)
    loaded._program.bind = fail
    with pytest.raises(MemoryError):
        loaded(torch.randn_like(model.weight), model.bias, torch.randn(2, 3, 9, 9))
    loaded._program.bind = bind
    check(loaded, model.weight, model.bias, 1)  # what was prepared before still is
