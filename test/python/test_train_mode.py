# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models in train mode: statistics and random numbers."""

import copy

import pytest
import torch
from counting import programs

import weft


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8, momentum=0.3)
        self.early = torch.nn.Dropout(0.3)
        self.late = torch.nn.Dropout(0.6)
        self.head = torch.nn.Linear(8 * 36, 5)

    def forward(self, x):
        x = self.early(self.norm(self.conv(x)).relu())
        return self.head(self.late(x.flatten(1)))


def assert_same_state(model, twin):
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def test_a_whole_net(no_grad, compiled_only):
    model = Net()
    twin = copy.deepcopy(model)
    compiled = weft.compile(model)
    for seed in range(4):
        x = torch.randn(4, 3, 6, 6)
        torch.manual_seed(seed)
        expected, state = twin(x), torch.get_rng_state()
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(x), expected, atol=1e-5, rtol=1e-5)
        assert torch.equal(torch.get_rng_state(), state)
        assert_same_state(model, twin)
    assert programs(compiled) == 1


def test_random_ops_are_drawn_in_program_order(no_grad, compiled_only):
    def function(x):
        a = torch.nn.functional.dropout(x, 0.5)
        b = torch.rand_like(x)
        c = torch.randn(3)
        unused = torch.rand(5)  # noqa: F841  draws all the same
        return b + c.sum(), a, torch.bernoulli(x.sigmoid())

    compiled = weft.compile(function)
    x = torch.randn(4, 8)
    for seed in range(3):
        torch.manual_seed(seed)
        expected, state = function(x), torch.get_rng_state()
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(x), expected)
        assert torch.equal(torch.get_rng_state(), state)


def test_eval_and_train_are_two_programs(no_grad, compiled_only):
    model = Net()
    twin = copy.deepcopy(model)
    compiled = weft.compile(model)
    x = torch.randn(4, 3, 6, 6)
    for train in (True, False, True, False):
        model.train(train)
        twin.train(train)
        torch.manual_seed(3)
        expected = twin(x)
        torch.manual_seed(3)
        torch.testing.assert_close(compiled(x), expected, atol=1e-5, rtol=1e-5)
        assert_same_state(model, twin)
    assert programs(compiled) == 2


def test_steps_of_training(verified, compiled_only):
    model = Net()
    twin = copy.deepcopy(model)
    compiled = weft.compile(model)
    x = torch.randn(4, 3, 6, 6)
    for net, call in ((model, compiled), (twin, twin)):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        torch.manual_seed(1)
        for _ in range(3):
            optimizer.zero_grad()
            call(x).square().mean().backward()
            optimizer.step()
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, atol=1e-4, rtol=1e-4)
    with torch.no_grad():  # the same object, with the trained weights
        model.eval()
        twin.eval()
        torch.testing.assert_close(compiled(x), twin(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("momentum", [None, 0.1])
@pytest.mark.parametrize("tracked", [True, False])
def test_batch_norm_variants(momentum, tracked, no_grad):
    model = torch.nn.BatchNorm1d(4, momentum=momentum, track_running_stats=tracked)
    twin = copy.deepcopy(model)
    compiled = weft.compile(model)
    for _ in range(3):
        x = torch.randn(6, 4)
        torch.testing.assert_close(compiled(x), twin(x))
        assert_same_state(model, twin)
