# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that make tensors require gradients, or require none any more: arguments, parameters, and
tensors of their own. Without verification, which would find them."""

import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def asks(x):
    x.requires_grad_()
    return x * 3


def sets(x):
    x.requires_grad = not x.requires_grad
    return x * 3


def detaches(x):
    x.detach_()
    return x * 3


def asks_of_own(x):
    own = x.detach().clone().requires_grad_()
    return own * 3


def makes_one(x):
    return torch.ones(3, requires_grad=True) + x


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("function", [asks, sets, detaches, asks_of_own, makes_one])
def test_arguments_and_own_tensors(monkeypatch, function, requires_grad):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(function)
    for _ in range(2):
        states = []
        for each in (function, compiled):
            x = torch.arange(3.0, requires_grad=requires_grad)
            result = each(x)
            if result.requires_grad:
                result.backward(torch.arange(3.0))
            gradient = None if x.grad is None else x.grad.tolist()
            states.append((result.tolist(), result.requires_grad, x.requires_grad, gradient))
        assert states[0] == states[1]


def retains(x):
    y = x * 2
    y.retain_grad()
    return y, (y * 3).sum()


def retains_given(x):
    x.retain_grad()
    return x * 3, (x * 2).sum()


@pytest.mark.parametrize("function", [retains, retains_given])
def test_retained_gradients(monkeypatch, function):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled = weft.compile(function)
    for _ in range(2):
        states = []
        for each in (function, compiled):
            x = torch.arange(3.0, requires_grad=True) * 1
            result, loss = each(x)
            loss.backward()
            retained = [y.grad for y in (x, result) if y.retains_grad]
            states.append([len(retained), *(None if y is None else y.tolist() for y in retained)])
        assert states[0] == states[1]


def names_result(x):
    y = x * 2
    y.scale = 3
    return y


def gives_gradient(x):
    y = x.detach() * 2
    y.grad = torch.ones(3)
    return y


def makes_parameter(x):
    return torch.nn.Parameter(x * 2, requires_grad=False)


def detaches_result(x):
    y = x * 2
    return y, y.detach()


@pytest.mark.parametrize(
    "function", [names_result, gives_gradient, makes_parameter, detaches_result]
)
def test_what_results_are_beside_their_values(monkeypatch, function):
    monkeypatch.setattr(weft.config, "verify", "off")
    compiled, x = weft.compile(function), torch.arange(3.0, requires_grad=True)
    for _ in range(2):
        states = [
            [
                (type(y), y.requires_grad, vars(y), None if not y.is_leaf else y.grad is not None)
                for y in (found if isinstance(found, tuple) else (found,))
            ]
            for found in (function(x), compiled(x))
        ]
        assert states[0] == states[1]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_detached_views_without_gradients(monkeypatch, mode):
    """Views of what requires gradients require some, even where none are recorded."""
    monkeypatch.setattr(weft.config, "verify", "off")
    x = torch.arange(3.0, requires_grad=True)
    for view in (lambda x: x.detach()[:2], lambda x: x[:2]):
        compiled = weft.compile(view)
        with mode():
            assert [compiled(x).requires_grad for _ in range(2)] == [view(x).requires_grad] * 2


def test_frozen_parameters(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")

    class Frozen(torch.nn.Linear):
        def forward(self, x):
            self.weight.requires_grad_(False)
            return super().forward(x)

    models = [Frozen(3, 3) for _ in range(2)]
    compiled = weft.compile(models[1])
    for _ in range(2):
        x = torch.ones(3)
        for model, each in zip(models, (models[0], compiled), strict=True):
            model.weight.requires_grad_(True)
            each(x).sum().backward()
            assert model.weight.grad is None and not model.weight.requires_grad


def test_a_gradient_within_is_compiled(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")

    def slope(x):
        own = x.detach().requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad((own**3).sum(), own)
        return gradient + x

    compiled, x = weft.compile(slope), torch.arange(3.0, requires_grad=True)
    assert torch.equal(compiled(x), slope(x)) and weft.stats(compiled)["breaks"] == []
