# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that fill gradients of tensors from outside, as a whole training step does."""

import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def whole_step(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def no_optimizer(model, optimizer):
    def step(x):
        loss = (model(x) ** 2).mean()
        loss.backward()
        return loss

    return step


def of_an_argument(model, optimizer):
    def step(x):
        loss = (model(x.detach()) * x).mean()
        loss.backward(inputs=[x])
        return loss

    return step


@pytest.mark.parametrize("make", [whole_step, no_optimizer, of_an_argument])
def test_they_are_filled(make):
    models = [torch.nn.Linear(3, 3).double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    steps = [make(model, torch.optim.SGD(model.parameters(), lr=0.1)) for model in models]
    compiled = weft.compile(steps[0])
    for count in range(1, 4):
        states = []
        for model, step in zip(models, (compiled, steps[1]), strict=True):
            x = torch.full((4, 3), float(count), dtype=torch.float64, requires_grad=True)
            result, parameters = step(x), [*model.parameters()]
            states.append([result, *parameters, x.grad, *(each.grad for each in parameters)])
        for a, b in zip(*states, strict=True):
            assert (a is None) == (b is None)
            assert a is None or torch.allclose(a, b, rtol=1e-12)
    reasons = weft.stats(compiled)["breaks"]
    assert make is not whole_step or "weft.compile_step" in reasons[0]
