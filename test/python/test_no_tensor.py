# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that return no tensor are programs, too: their Python does not run again."""

import pytest
import torch
from torch import nn

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "verified")


class Always(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, *_):
        return self.value


@pytest.mark.sampled(2)
@pytest.mark.parametrize("value", [None, 3, True, 2.5, -0.0, float("inf"), "text"])
@pytest.mark.parametrize("args", [(), (torch.ones(2),)])
def test_numbers_and_nothing(value, args):
    compiled = weft.compile(module := Always(value))
    for _ in range(3):
        found = compiled(*args)
        assert type(found) is type(value) and repr(found) == repr(value)
    stats = weft.stats(compiled)
    assert stats["graphs"] == 1 and not stats["breaks"], stats
    module.value = "other"
    assert compiled(*args) == "other"


@pytest.mark.parametrize("value", [torch.Size([1, 2]), (1, 2)])
def test_tuples_are_left_to_pytorch(value):
    compiled = weft.compile(Always(value), capture="export")
    with pytest.warns(weft.errors.WeftWarning, match="computes no tensor"):
        assert type(compiled()) is type(value) and compiled() == value
