# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Levels of optimisation: what each does, and that results agree."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import weft
from weft import errors, ir
from weft.ir import ops

LEVELS = range(4)


class Block(nn.Module):
    """Attention, a norm and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm = nn.LayerNorm(32)
        self.wide, self.narrow = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        x = self.norm(x + self.attention(x, x, x)[0])
        return self.narrow(torch.relu(self.wide(x))).softmax(-1)


def convolutions() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 16, 3, padding=1, groups=4), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 10)),
    )


def compiled(program, level, *args):
    made = weft.compile(program, level=level, fullgraph=True)
    with torch.no_grad():
        made(*args)
        result = made(*args)
    assert weft.stats(made)["hits"]
    return made, result


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "make, shape", [(Block, (2, 40, 32)), (convolutions, (2, 3, 16, 16))], ids=["block", "convs"]
)
def test_results_agree(make, shape, level):
    torch.manual_seed(0)
    model, x = make().eval(), torch.randn(shape)
    _, result = compiled(model, level, x)
    torch.testing.assert_close(result, model(x).detach(), rtol=1e-4, atol=1e-5)


def test_what_each_level_does():
    torch.manual_seed(0)
    model, x = Block().eval(), torch.randn(2, 40, 32)
    at = [compiled(model, level, x)[0] for level in LEVELS]
    calls = [weft.ir(each, "kernels").count("call @") for each in at]
    assert calls[0] > 2 * calls[1] > 0, "computations are fused from level 1 on"
    attends = ["weft.attention" in weft.ir(each, "optimized") for each in at]
    assert attends == [False, False, True, True]
    laid_out = ["#weft.layout" in weft.ir(each, "optimized") for each in at]
    assert laid_out == [False, False, False, True]


def test_every_computation_is_a_kernel_at_level_0():
    made, _ = compiled(lambda x: (x.exp() + 1).tanh(), 0, torch.randn(99))
    assert weft.ir(made, "kernels").count("call @") == 3


def test_passes_of_a_higher_level_are_left_out():
    @ir.module_pass(level=2)
    def use_fma(module):
        fma = ir.pattern(
            lambda a, b, c: ops.add(ops.mul(a, b), c), lambda a, b, c: ops.fma(a, b, c)
        )
        fma.apply(module, remove_unused=True)

    x = torch.randn(5)
    for level in LEVELS:
        made = weft.compile(lambda x: x * x + x, passes=[use_fma], level=level)
        with torch.no_grad():
            made(x)
        assert ("weft.fma" in weft.ir(made)) == (level >= 2)


@pytest.mark.parametrize("level", [-1, 4, "3", True])
def test_other_levels_are_refused(level):
    with pytest.raises(errors.ConfigError, match="expected level 0, 1, 2 or 3"):
        weft.compile(torch.relu, level=level)


class TestFailedPasses:
    def test_fullgraph_raises_them(self):
        @ir.module_pass
        def broken(module):
            raise ZeroDivisionError("in my pass")

        made = weft.compile(lambda x: x + 1, passes=[broken], fullgraph=True)
        for _ in range(2):
            with torch.no_grad(), pytest.raises(errors.PassError, match="'broken'") as failed:
                made(torch.ones(3))
            assert isinstance(failed.value, errors.NotCompiledError)
            assert isinstance(failed.value.__cause__, ZeroDivisionError)
            assert failed.value.__cause__.__traceback__ is not None
            assert failed.value.pass_name == "broken"

    def test_otherwise_pytorch_runs_the_call(self):
        @ir.module_pass
        def broken(module):
            raise ZeroDivisionError("in my pass")

        made = weft.compile(lambda x: x + 1, passes=[broken])
        with torch.no_grad(), pytest.warns(errors.WeftWarning, match="'broken' failed"):
            assert made(torch.ones(3)).tolist() == [2, 2, 2]
