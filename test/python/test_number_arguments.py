# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain numbers among arguments and attributes, of which a second value makes an input."""

from __future__ import annotations

import json
import math
import operator
import types

import pytest
import torch
import torch.nn.functional as F

import weft
from weft.capture.traced_numbers import _Traced
from weft.frontend.numbers import Number, Numbers

X = torch.linspace(-3, 3, 60).reshape(4, 15)
pytestmark = pytest.mark.usefixtures("automatic_sizes")
# What the elements of some type cannot hold, other types, and what no program takes.
CORNERS = [-0.0, 1e-42, 70000.0, 1e300, math.inf, math.nan, 2, True, 2**60]


def agree(compiled, function, *args, **kwargs):
    """And with the same types: PyTorch's promotion goes by them."""
    try:
        expected = function(*args, **kwargs)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=str(error)):
            compiled(*args, **kwargs)
        return
    found = compiled(*args, **kwargs)
    torch.testing.assert_close(found, expected, rtol=2e-6, atol=2e-6, equal_nan=True)


def many_ops(x, t):
    return (
        x * t + 1,
        torch.clamp(x, -abs(t), abs(t)) + torch.clip(x, max=t),
        F.leaky_relu(x, t),
        torch.where(x > t, x, t),
        torch.add(x, x.flip(0), alpha=t),
        x.bfloat16() * t,
        x.clone().mul_(t),
        torch.lerp(x, x.flip(0), t),
        torch.tensor([t, 2 * t]),
        torch.arange(3) * t,
        torch.softmax(x / (abs(t) + 1), -1),
        x * math.sin(t) if math.isfinite(t) else x,
    )


def test_a_second_value_makes_an_input():
    compiled = weft.compile(many_ops)
    for t in (0.7, 0.6, -1.7, 123.5, 0.0, -0.0, 1e-42, 0.1):
        agree(compiled, many_ops, X, t)
    # The weight of a lerp has two programs, of the nearer end.
    assert compiled.stats()["graphs"] == 3


def powers(x, t):
    return x.abs() ** t


def test_exponents_that_pytorch_treats_apart():
    compiled = weft.compile(powers)
    for t in (0.3, 0.7, 2.0, 1.0, 0.5, -0.5, 3.0, -1.0, 0.0, 1.25):
        agree(compiled, powers, torch.tensor([0.0, -0.0, 2.0, math.inf]), t)
    assert compiled.stats()["graphs"] == 8  # 0.3, those treated apart, and one for all others


def branches(x, t, *, scale=1.0, options):
    if t > 1 or type(t) is int:
        return x * t + options["shift"]
    return (x - t) * scale if isinstance(t, float) else x


def test_branches_are_conditions():
    compiled = weft.compile(branches)
    for t in (0.1, 0.2, 0.3, 1.5, 1.7, 3, 5, -2, 0.4):
        agree(compiled, branches, X, t, scale=t / 3, options={"shift": t + 1})
    assert compiled.stats()["graphs"] == 6  # three paths, one of ints; constants for each type


def whole(x, n):
    every_other = x * 2 if n % 2 == 0 else x
    return every_other * n + torch.arange(4)[:, None] + n // 3 - n**2, x.long() * n


def test_ints():
    compiled = weft.compile(whole)
    for n in (3, 4, 5, 7, -9, 8, 1000, 0, 1, 2**31):
        agree(compiled, whole, X, n)
    assert compiled.stats()["graphs"] <= 4


def looked_at(x, t, n):
    return x[:, :n] * float(t)


def test_what_is_looked_at_is_a_constant():
    compiled = weft.compile(looked_at)
    for n in (2, 3, 4):
        agree(compiled, looked_at, X, n / 7, n)
    assert compiled.stats()["graphs"] == 3
    reasons = compiled.stats()["specialized"]
    assert len(reasons) == 2 and "t == 0.42857142857142855" in reasons[1]


def test_views_lie_where_numbers_say():
    compiled = weft.compile(lambda x, n: x[:, n])
    for n in (2, 1, 0, -1):
        assert torch.equal(compiled(X, n), X[:, n])


def annealed(x, y, beta):
    return F.mse_loss(x, y) + beta * (x.exp() - x).mean()


def test_gradients():
    compiled = weft.compile(annealed)
    for beta in (0.1, 0.2, 0.35, 0.0, 5):
        x, own = (X.clone().requires_grad_() for _ in range(2))
        annealed(x, X + 1, beta).backward()
        compiled(own, X + 1, beta).backward()
        torch.testing.assert_close(own.grad, x.grad)
    assert compiled.stats()["graphs"] == 3


class Annealed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = 1.0
        self.steps = 0
        self.width = 5

    def forward(self, x):
        x = x * 2 if self.temperature > 4 else x
        return torch.softmax(x[:, : self.width] / self.temperature, -1)


def test_attributes_that_others_change():
    model = Annealed()
    compiled = weft.compile(model)

    def call(temperature):
        model.temperature = temperature
        model.steps += 1
        agree(compiled, model.forward, X)

    for temperature in (1.0, 0.5, 0.25, 2.5, 0.125):
        call(temperature)
    assert compiled.stats()["captures"] == 2
    for temperature in (5.0, 6.0, math.nan, 2, -1.5):
        call(temperature)
    captures = compiled.stats()["captures"]
    model.width = 7
    call(0.75)
    call(0.8)
    call(0.9)
    assert compiled.stats()["captures"] == captures + 2  # one has found out that a size depends


def test_attributes_of_an_object_that_takes_anothers_place():
    model = torch.nn.Sequential(Annealed())
    compiled = weft.compile(model)
    for temperature in (1.0, 0.5, 0.25):
        model[0].temperature = temperature
        agree(compiled, model, X)
    model[0] = Annealed()
    for temperature in (3.0, 2.0):
        model[0].temperature = temperature
        agree(compiled, model, X)


def test_sizes_may_vary_beside_attributes_that_nothing_reads():
    """As the length of the last cache, which transformers keeps on a model."""

    class Noted(torch.nn.Module):
        calls, scales = 0, False

        def forward(self, x):
            return torch.softmax(x * self.calls if self.scales and len(x) > 16 else x, 0)

    model = Noted()
    compiled = weft.compile(model)

    def call(rows):
        model.calls += 1
        agree(compiled, model.forward, torch.linspace(-1, 1, rows * 4).reshape(rows, 4))

    model.calls = 1
    for rows in (3, 4, 5, 9, 20, 18):
        call(rows)
    assert [*compiled.stats()["ranges"]] == ["f32[2..16, 4]", "f32[17..32, 4]"]
    model.scales = True
    for rows in (19, 18):
        call(rows)
    assert compiled.stats()["graphs"] == 5
    assert "reads an attribute that is a number" in compiled.stats()["specialized"][-1]


class Counting(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def test_attributes_that_the_call_changes():
    model, compiled = Counting(), weft.compile(Counting())
    for _ in range(6):
        agree(compiled, model, X)


def scaled(x, t):
    return x * t + 3


def test_a_program_is_compared_at_earlier_numbers(monkeypatch, verified):
    def constant(builder, number, dtype, shape):
        number.numbers.input_of(number, dtype)
        return builder.constant(number.value, dtype, shape)

    monkeypatch.setattr("weft.frontend.builder.number_value", constant)
    compiled = weft.compile(scaled)
    for t in (0.3, 0.7, 0.9, 0.3):
        agree(compiled, scaled, X, t)
    (reason,) = compiled.stats()["specialized"]
    assert "with numbers 0.3" in reason


def filled(x, t):
    return x * t, torch.full((3,), t, dtype=torch.half), x.half() * t


def test_numbers_at_the_borders_of_types():
    compiled = weft.compile(filled)
    for t in (0.3, 0.7, *CORNERS):
        agree(compiled, filled, X, t)
    assert compiled.stats()["breaks"] == []


def test_programs_for_each_value_are_there_for_the_asking():
    compiled = weft.compile(scaled, automatic=False)
    for t in (0.3, 0.7, 0.9):
        agree(compiled, scaled, X, t)
    assert compiled.stats()["graphs"] == 3


def shown(x, t):
    try:
        return x * 2 if json.dumps(t) == "0.5" else x
    except TypeError:  # of what is no number to code in C
        return x


def test_errors_that_no_number_of_pythons_causes():
    compiled = weft.compile(shown)
    for t in (0.25, 0.75, 0.5):
        agree(compiled, shown, X, t)


# What is computed of numbers.


def taking(*values):
    numbers = Numbers(tuple(range(len(values))), list(values))
    return numbers, *(Number(numbers, place) for place in range(len(values)))


def test_steps_are_those_of_python():
    numbers, a, b = taking(2.5, 3)
    made = (a // 0.1 + b % 2) / round(a * b, 1) - abs(-a) ** b
    numbers.input_of(made, torch.float32)
    inputs = numbers.inputs(["a", "b"])
    for x, y in ((2.5, 3), (0.7, 11), (1e-3, 2)):
        expected = (x // 0.1 + y % 2) / round(x * y, 1) - abs(-x) ** y if x > 0.1 else None
        taken = inputs.take([x, y], inputs.function(()))
        assert taken == (None if expected is None else (expected,))  # the last divides by zero
    assert inputs.take([2, 3], inputs.function(())) is None  # of another type


def test_what_an_element_cannot_hold_is_not_taken():
    numbers, a = taking(1.0)
    numbers.input_of(a, torch.float16)
    function = numbers.inputs(["a"]).function(())
    assert function(-65504.0) == (-65504.0,)
    assert all(function(x) is None for x in (65505.0, math.inf, math.nan))


def test_a_result_of_another_type_is_no_result():
    numbers, n = taking(3)
    numbers.input_of(2**n, torch.float32)
    function = numbers.inputs(["n"]).function(())
    assert function(4) == (16,) and function(-1) is None  # 0.5 is no int


def test_an_error_of_pythons_makes_a_condition():
    numbers, a = taking(-2.0)
    with pytest.raises(ValueError, match="math domain error"):
        numbers.apply(math.log, a)
    assert numbers.inputs(["a"]).fixed == {0}


@pytest.mark.parametrize("value", [7, 7.5])
def test_attributes_are_those_of_a_number(value):
    numbers, a = taking(value)
    traced = _Traced.of(types.SimpleNamespace(node=lambda number: None), a)
    for name in {*dir(torch.SymInt), *dir(torch.SymFloat), *dir(value)} - {"node"}:
        if not name.startswith(("__sym_", "_sympy_")):
            assert hasattr(traced, name) == hasattr(value, name), name
    assert traced.as_integer_ratio() == value.as_integer_ratio()
    assert numbers.inputs(["a"]).fixed == {0}


@pytest.mark.parametrize("look", [float, str, hash, operator.index, "{:.1f}".format, complex])
def test_whoever_looks_makes_a_condition(look):
    numbers, a = taking(7)
    assert look(a) == look(7)
    inputs = numbers.inputs(["a"])
    assert inputs.fixed == {0} and inputs.function(())(8) is None
    assert "a == 7" in inputs.told()
