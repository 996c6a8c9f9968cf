# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of modules in hand that occur nowhere as they stand, and modules that are no plain ones."""

from __future__ import annotations

import importlib
import sys
import types

import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


@pytest.fixture
def settings(monkeypatch):
    """A module of the user's with one in it."""
    made = types.ModuleType("settings_of_a_test")
    made.inner, made.scale = types.ModuleType("inner"), 2.0
    made.inner.scale = 2.0
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def check(function, change, captured=True):
    """Before and after the change."""
    compiled, x = weft.compile(function), torch.randn(3)
    for step in range(4):
        if step == 2:
            change()
        torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)
    assert (compiled.stats()["graphs"] > 0) >= captured


@pytest.mark.parametrize("ask", [hasattr, lambda module, name: getattr(module, name, None)])
def test_a_name_that_it_comes_to_have(ask, settings, verified):
    def f(x, module=settings):
        return x * 3 if ask(module, "flag") else x + 1

    check(f, lambda: setattr(settings, "flag", True))


def test_a_name_that_it_comes_to_have_beside_its_getattr(settings, verified):
    settings.__getattr__ = lambda name: 5.0

    def f(x, module=settings):
        return x * module.late

    check(f, lambda: setattr(settings, "late", 7.0))


def test_names_in_a_tuple_of_constants(settings, verified):
    def f(x, found=settings):
        for name in ("inner", "scale"):
            found = getattr(found, name)
        return x * found

    check(f, lambda: setattr(settings.inner, "scale", 7.0))


def test_a_property_of_its_class(settings, verified):
    class OfTheUser(types.ModuleType):
        factor = 2.0

        @property
        def doubled(self):
            return self.factor * 2

    settings.__class__ = OfTheUser

    def f(x, module=settings):
        return x * module.doubled

    check(f, lambda: setattr(OfTheUser, "factor", 7.0))


@pytest.mark.parametrize("way", ["closure", "parameter"])
def test_an_attribute_of_a_tensor(way, settings, verified):
    weight = torch.nn.Parameter(torch.ones(3))
    weight.module = settings

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weight

        def forward(self, x):
            return x * self.weight.module.scale

    def f(x):
        return x * weight.module.scale

    function = f if way == "closure" else Model()
    check(function, lambda: setattr(settings, "scale", 7.0))


def test_a_module_imported_by_its_name(settings, verified):
    def f(x):
        return x * importlib.import_module("settings_of_a_test").scale

    check(f, lambda: setattr(settings, "scale", 7.0), captured=False)
