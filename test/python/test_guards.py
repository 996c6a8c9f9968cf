# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whatever a program was specialised on may change; the next call must see it."""

import pytest
import torch
from counting import programs

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.scale = 2.0
        self.sizes = [1, 2]
        self.options = {"bias": 1.0}
        self.register_buffer("shift", torch.zeros(4))

    def forward(self, x):
        x = self.norm(self.linear(x)) * self.scale + self.shift
        return x * self.sizes[-1] + self.options["bias"]


def replace_weight(model):
    model.linear.weight = torch.nn.Parameter(torch.randn(4, 4))


def replace_module(model):
    model.linear = torch.nn.Linear(4, 4)


def replace_dict(model):
    model.__dict__ = {**model.__dict__, "scale": 5.0}


def replace_class(model):
    class Other(Model):
        def forward(self, x):
            return super().forward(x) * 3

    model.__class__ = Other


def patch_forward(model):
    model.linear.forward = lambda x: x - 1


CHANGES = {
    "attribute": lambda model: setattr(model, "scale", 3.0),
    "list": lambda model: model.sizes.append(7),
    "dict": lambda model: model.options.update(bias=4.0),
    "eval": lambda model: model.eval(),
    "momentum": lambda model: setattr(model.norm, "eps", 0.5),
    "weight in place": lambda model: model.linear.weight.mul_(2),
    "weight data": lambda model: setattr(model.linear.weight, "data", torch.randn(4, 4)),
    "weight strides": lambda model: setattr(model.linear.weight, "data", torch.randn(4, 4).t()),
    "weight numpy": lambda model: model.linear.weight.detach().numpy().fill(0.25),
    "buffer": lambda model: setattr(model, "shift", torch.ones(4)),
    "weight": replace_weight,
    "module": replace_module,
    "__dict__": replace_dict,
    "__class__": replace_class,
    "forward": patch_forward,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("train", [False, True])
def test_changes_of_a_module(change, train):
    torch.manual_seed(1)
    model, twin = Model().train(train), Model().train(train)
    twin.load_state_dict(model.state_dict())
    compiled = weft.compile(model)
    x = torch.randn(8, 4)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), twin(x))
    for each in (model, twin):
        torch.manual_seed(2)
        change(each)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), twin(x))
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def test_a_change_undone_finds_its_program_again():
    model = Model().eval()
    compiled = weft.compile(model)
    x = torch.randn(8, 4)
    for scale in (1.0, 2.0, 1.0, 2.0, 1.0):
        model.scale = scale
        torch.testing.assert_close(compiled(x), model(x))
    assert programs(compiled) == 2


def test_weights_in_place_need_no_new_program():
    model = Model().eval()
    compiled = weft.compile(model)
    x = torch.randn(8, 4)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), model(x))
        model.linear.weight.add_(1)
    assert programs(compiled) == 1


SCALE = 2.0


def helper(x):
    return x * SCALE


def test_globals_and_closures():
    global SCALE
    linear = torch.nn.Linear(3, 3)
    shift = torch.ones(3)
    factor = 2

    def function(x, power=2):
        return helper(linear(x) + shift) * factor**power

    compiled = weft.compile(function)
    x = torch.randn(2, 3)
    torch.testing.assert_close(compiled(x), function(x))
    assert programs(compiled) == 1
    shift.add_(1)
    torch.testing.assert_close(compiled(x), function(x))
    assert programs(compiled) == 1
    factor = 3
    torch.testing.assert_close(compiled(x), function(x))
    linear = torch.nn.Linear(3, 3)
    torch.testing.assert_close(compiled(x), function(x))
    shift = torch.zeros(3)
    torch.testing.assert_close(compiled(x), function(x))
    function.__defaults__ = (1,)
    torch.testing.assert_close(compiled(x), function(x))
    SCALE = 7.0
    try:
        torch.testing.assert_close(compiled(x), function(x))
    finally:
        SCALE = 2.0
    torch.testing.assert_close(compiled(x), function(x))


def test_default_dtype():
    compiled = weft.compile(lambda x: x + torch.ones(3).sum())
    x = torch.ones(3, dtype=torch.float32)
    assert compiled(x).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        compiled = weft.compile(lambda x: torch.arange(3.0) + x)
        assert compiled(x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert compiled(x).dtype == torch.float32


def test_autocast():
    linear = torch.nn.Linear(8, 8)
    compiled = weft.compile(linear)
    x = torch.randn(2, 8)
    assert compiled(x).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compiled(x).dtype == torch.bfloat16
        torch.testing.assert_close(compiled(x), linear(x), atol=2e-2, rtol=2e-2)
    assert compiled(x).dtype == torch.float32


def test_inference_mode_gives_inference_tensors():
    compiled = weft.compile(lambda x: x + 1)
    x = torch.ones(3)
    assert not compiled(x).is_inference()
    with torch.inference_mode():
        assert compiled(x).is_inference()
        assert compiled(compiled(x)).is_inference()
    assert not compiled(x).is_inference()


def test_grad_mode_is_seen():
    compiled = weft.compile(lambda x: x + (1 if torch.is_grad_enabled() else 2))
    x = torch.ones(3)
    assert compiled(x)[0] == 3
    with torch.enable_grad():
        assert compiled(x)[0] == 2
    assert compiled(x)[0] == 3
