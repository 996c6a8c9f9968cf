# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whatever a program was specialised on may change; the next call must see it."""

import collections

import numpy
import pytest
import torch
from counting import programs

import weft

pytestmark = pytest.mark.usefixtures("no_grad")


class Activation:
    def __init__(self):
        self.slope = 1.0

    def __call__(self, x):
        return x * self.slope


class Model(torch.nn.Module):
    gain = 1.0

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.scale = 2.0
        self.sizes = [1, 2]
        self.options = {"bias": 1.0}
        self.table = numpy.ones((2, 2))
        self.activation = Activation()
        self.register_buffer("shift", torch.zeros(4))

    def forward(self, x):
        x = self.norm(self.linear(x)) * self.scale * self.gain + self.shift
        x = self.activation(x) * float(self.table[1, 0])
        return x * self.sizes[-1] + self.options["bias"]


def replace_weight(model):
    model.linear.weight = torch.nn.Parameter(torch.randn(4, 4))


def replace_module(model):
    model.linear = torch.nn.Linear(4, 4)


def replace_dict(model):
    model.__dict__ = {**model.__dict__, "scale": 5.0}


def change_class(model):
    model.__class__ = type("Changed", (Model,), {"gain": 1.0})
    model.__class__.gain = 7.0


def patch_method(model):
    model.activation = lambda x: x * 3


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
    "array": lambda model: model.table.fill(3.0),
    "callable object": lambda model: setattr(model.activation, "slope", 4.0),
    "class": change_class,
    "function": patch_method,
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


@pytest.mark.sampled(6)
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


def test_autocast(compiled_only):
    linear = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(inplace=True))
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


def test_deterministic_algorithms_are_another_program():
    compiled = weft.compile(lambda x: x * 2)
    x = torch.ones(3)
    compiled(x)
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.equal(compiled(x), x * 2)
        assert programs(compiled) == 2
    finally:
        torch.use_deterministic_algorithms(False)
    compiled(x)
    assert programs(compiled) == 2


FACTORS = {"a": 2.0}
TABLE = torch.ones(3)


class Settings:
    factor = 2.0


def scaled(x):
    return x * SCALE


class UsesGlobals(torch.nn.Module):
    @property
    def offset(self):
        return FACTORS["a"]

    def forward(self, x):
        return scaled(x) * Settings.factor + self.offset + TABLE


def set_scale(value):
    globals()["SCALE"] = value


def set_table(value):
    globals()["TABLE"] = value


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "undo", "count"),
    [
        (lambda: set_scale(5.0), lambda: set_scale(2.0), 2),
        (lambda: FACTORS.update(a=5.0), lambda: FACTORS.update(a=2.0), 2),
        (lambda: setattr(Settings, "factor", 5.0), lambda: setattr(Settings, "factor", 2.0), 2),
        (lambda: TABLE.mul_(3), lambda: TABLE.div_(3), 1),
        (lambda: set_table(torch.zeros(3)), lambda: set_table(torch.ones(3)), 2),
    ],
    ids=["behind a helper", "dict", "class", "tensor in place", "tensor"],
)
def test_globals_of_methods(change, undo, count, compiled_only):
    model = UsesGlobals()
    compiled = weft.compile(model)
    x = torch.randn(3)
    torch.testing.assert_close(compiled(x), model(x))
    change()
    try:
        torch.testing.assert_close(compiled(x), model(x))
        assert programs(compiled) == count
    finally:
        undo()
    torch.testing.assert_close(compiled(x), model(x))


def test_globals_that_do_not_count_need_no_new_program(compiled_only):
    compiled = weft.compile(UsesGlobals())
    x = torch.randn(3)
    for number in range(3):
        globals()["UNRELATED"] = number
        compiled(x)
    assert programs(compiled) == 1


def test_a_mutable_object_without_a_guard_runs_eagerly():
    model = torch.nn.Linear(2, 2)
    model.history = collections.deque([1.0])
    compiled = weft.compile(model, capture="export")
    torch.testing.assert_close(compiled(torch.ones(1, 2)), model(torch.ones(1, 2)))
    assert "deque" in " ".join(compiled.eager_reasons)


def test_a_tensor_passed_twice():
    def function(x, y, z):
        return x + y * 2 + z * 3

    compiled = weft.compile(function)
    x, y = torch.randn(3), torch.randn(3)
    for arguments in [(x, x, y), (x, y, y), (x, x, x), (x, y, x), (x, y, torch.randn(3))] * 2:
        torch.testing.assert_close(compiled(*arguments), function(*arguments))
    assert programs(compiled) == 5


def test_a_tensor_passed_twice_and_written():
    def function(x, y):
        x.add_(1)
        return y * 2

    compiled = weft.compile(function)
    for _ in range(2):
        mine, theirs = torch.ones(3), torch.ones(3)
        torch.testing.assert_close(compiled(mine, mine), function(theirs, theirs))
        torch.testing.assert_close(mine, theirs)


def test_a_parameter_passed_as_an_argument(compiled_only):
    linear = torch.nn.Linear(3, 3)

    def function(w, x):
        return linear(x) + w

    compiled = weft.compile(function)
    for w in (linear.weight, torch.randn(3, 3), linear.weight):
        x = torch.randn(3, 3)
        torch.testing.assert_close(compiled(w, x), function(w, x))


DOUBLED = {torch.nn.Linear, torch.nn.BatchNorm1d, torch.relu, "gelu", 3}


class Choosing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        return x * 2 if type(self.layer) in DOUBLED else x


def test_sets_of_classes_and_functions():
    model, x = Choosing(), torch.randn(2, 4)
    compiled = weft.compile(model)
    assert torch.allclose(compiled(x), model(x)) and programs(compiled) == 1
    DOUBLED.discard(torch.nn.Linear)
    try:
        assert torch.allclose(compiled(x), model(x)) and programs(compiled) == 2
    finally:
        DOUBLED.add(torch.nn.Linear)
    assert torch.allclose(compiled(x), model(x)) and programs(compiled) == 2
