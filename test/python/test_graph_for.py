# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The optimised graph for a call's arguments, as text."""

import pytest
import torch
from torch import nn

import weft
from weft import errors


def test_fusion_groups_and_steps(no_grad):
    compiled = weft.compile(nn.LSTM(5, 7))
    text = compiled.graph_for(torch.randn(9, 3, 5))
    assert weft.stats(compiled)["hits"] == 0
    head, main, _, step, *kernels = text.strip().split("\n\n")[1:]
    cell = "sigmoid + mul + sigmoid + tanh + mul + add + sigmoid + tanh + mul"
    assert head.splitlines() == [
        "main:",
        "  loop over step: 9 steps of 2 kernels each",
        "  FusionGroup_0: dot_general + add, called at 1 place",
        "  FusionGroup_1: dot_general + add + add, called at 1 place",
        f"  FusionGroup_2: {cell}, called at 1 place",
    ]
    assert "@FusionGroup_0(" in main and "weft.loop @step 9 " in main
    assert "@FusionGroup_1(" in step and "@FusionGroup_2(" in step
    assert sum("@FusionGroup_" in kernel for kernel in kernels) == 3


def test_inputs_choose_the_program(no_grad):
    compiled = weft.compile(lambda x: torch.tanh(x) + 1)
    for shape in ((3, 4), (5,)):
        compiled(torch.randn(shape))
    text = compiled.graph_for(torch.randn(3, 4))
    assert "f32[3, 4]" in text and "tensor<3x4xf32>" in text and "tensor<5xf32>" not in text


def test_differentiated_halves():
    compiled = weft.compile(nn.Sequential(nn.Linear(5, 7), nn.Tanh()))
    text = compiled.graph_for(torch.randn(3, 5))
    forward, backward = text.index("DifferentiableGraph_0, forward:"), text.index(", backward:")
    assert forward < text.index("weft.tanh") < backward < text.rindex("weft.dot_general")


def test_calls_that_pytorch_runs():
    with pytest.raises(errors.Error, match="PyTorch runs this call: .*"):
        weft.compile(lambda x: print(x)).graph_for(torch.ones(2))
