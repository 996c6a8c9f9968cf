# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capture by observing: torch.inference_mode within calls."""

import pytest
import torch
from observing import compiled, values, whole
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")


def test_inference_mode_within():
    def f(x, scale):
        with torch.inference_mode():
            y = x * scale
            inner = torch.is_inference_mode_enabled()
            with torch.inference_mode(False):
                z = x * 3
        return y, z, inner, torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    fast = compiled(f)
    for i in range(4):
        found, expected = fast(values() + i, 2), f(values() + i, 2)
        assert str(found) == str(expected)
        assert [each.is_inference() for each in found[:2]] == [True, False]
        assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    assert whole(fast)


def test_compiled_code_does_not_leave_the_inference_mode_out():
    def f(x):
        with torch.inference_mode():
            return x * 2 + 1

    fast = compiled(f, "native")
    for _ in range(4):
        assert fast(values()).is_inference() and torch.equal(fast(values()), f(values()))
    assert whole(fast)


def test_inference_mode_as_decorator():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        @torch.inference_mode()
        def forward(self, x):
            return self.layer(x).relu()

    model = Model()
    fast = compiled(model)
    for _ in range(3):
        found = fast(values())
        assert torch.equal(found, model(values())) and found.is_inference()
        assert not found.requires_grad and not torch.is_inference_mode_enabled()
    assert whole(fast)


def test_inference_mode_is_left_when_data_take_another_path():
    def f(x):
        with torch.inference_mode():
            y = x * 2
            if y.sum() > 0:
                return y
            return y * 3

    fast = compiled(f)
    for sign in (1, 1, -1, 1, -1, -1):
        found = fast(values() * sign)
        assert torch.equal(found, f(values() * sign)) and found.is_inference()
        assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
        assert (values() * 2).is_inference() is False


def test_what_is_written_in_inference_mode():
    state, layer = torch.zeros(3), nn.BatchNorm1d(3)
    twin, other = torch.zeros(3), nn.BatchNorm1d(3)

    def f(x, state, layer):
        with torch.inference_mode():
            state.add_(1)
            y = layer(x + torch.arange(12.0).view(4, 3)) * state
        return y

    fast = compiled(lambda x: f(x, state, layer))
    for i in range(4):
        assert torch.equal(fast(values() + i), f(values() + i, twin, other))
        assert torch.equal(state, twin) and not state.is_inference()
        assert torch.equal(layer.running_mean, other.running_mean)
    assert whole(fast)


def test_an_error_within_inference_mode():
    def f(x):
        with torch.inference_mode():
            return x.view(2) * 2

    fast = compiled(f)
    for count in (2, 2, 3, 2):
        if count == 3:
            with pytest.raises(RuntimeError):
                fast(values(count))
        else:
            assert torch.equal(fast(values(count)), values(count) * 2)
        assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()


def test_a_mode_that_the_program_keeps_is_not_captured():
    mode = torch.inference_mode()

    def f(x):
        with mode:
            return x * 2

    fast = compiled(f)
    for _ in range(3):
        assert fast(values()).is_inference()
