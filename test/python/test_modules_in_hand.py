# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that code has in hand: by an import within the call, a closure, an attribute."""

import math
import statistics
import types

import pytest
import torch
import torch.nn.functional as F
from agreeing import agrees, called
from torch import nn

import weft

pytestmark = [
    pytest.mark.usefixtures("no_grad", "verified"),
    pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning"),
]


def imports_in_the_call(x):
    import math as numbers
    from math import tau

    return x * numbers.pi + tau


def text_of_a_module(x):
    functions, name = torch.nn.functional, "relu"
    return functions.softplus(x) + getattr(functions, name)(x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "function, module, name, value",
    [
        (imports_in_the_call, math, "tau", 1.0),
        (imports_in_the_call, math, "pi", 1.0),
        (text_of_a_module, F, "relu", torch.neg),
        (text_of_a_module, F, "softplus", torch.neg),
    ],
)
def test_a_patched_module_that_code_has_in_hand(monkeypatch, function, module, name, value):
    x = torch.randn(3)
    compiled = called(function, x)
    monkeypatch.setattr(module, name, value)
    agrees(compiled, function, x)
    monkeypatch.undo()
    agrees(compiled, function, x)
    assert not weft.stats(compiled)["breaks"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", ["closure", "attribute", "default", "class", "list", "namespace"])
def test_names_of_modules_that_no_global_has(way):
    settings = types.ModuleType("settings")
    settings.scale, settings.inner = 2.0, types.SimpleNamespace(shift=1.0)
    settings.function = lambda x: x + settings.inner.shift

    def use(x, module):
        return module.function(x * module.scale * statistics.mean([1, 2]))

    class Model(nn.Module):
        of_class = settings

        def __init__(self):
            super().__init__()
            self.module, self.modules_of = settings, [settings]
            self.holder = types.SimpleNamespace(module=settings)

        def forward(self, x):
            found = {
                "attribute": self.module,
                "class": self.of_class,
                "list": self.modules_of[0],
                "namespace": self.holder.module,
            }
            return use(x, found[way])

    def closure(x):
        return use(x, settings)

    def default(x, module=settings):
        return use(x, module)

    f = {"closure": closure, "default": default}.get(way) or Model()
    x = torch.randn(3)
    compiled = called(f, x)
    assert weft.stats(compiled)["hits"] > 0
    settings.scale = 3.0
    agrees(compiled, f, x)
    settings.inner.shift = 5.0
    agrees(compiled, f, x)
    settings.function = lambda x: x - 1
    agrees(compiled, f, x)


def test_functions_of_standard_modules_in_hand(monkeypatch):
    import statistics as standard  # in the closure of f

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = standard

        def forward(self, x):
            return x * self.module.mean([1, 2, 3])

    def f(x):
        return x * standard.mean([1, 2, 3])

    x = torch.randn(3)
    for target in (f, Model()):
        compiled = called(target, x)
        with monkeypatch.context() as patched:
            patched.setattr(statistics, "mean", lambda items: 50.0)
            agrees(compiled, target, x)
        agrees(compiled, target, x)
