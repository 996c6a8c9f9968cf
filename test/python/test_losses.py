# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses with rules of their own."""

import pytest
import torch
import torch.nn.functional as F

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

TARGETS = [
    [[0, 1, -1, 3, 2], [4, 3, 2, 1, 0], [-1, 0, 0, 0, 0], [2, 2, 2, -1, 4]],
    [[1, 2, -1, 0, 0]],
    [1, 2, -1, 0, 0],
]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("target", TARGETS)
def test_multilabel_margin_loss(target, reduction):
    target = torch.tensor(target)
    x = torch.randn(target.shape)
    compiled = weft.compile(
        lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction), capture="export"
    )
    torch.testing.assert_close(
        compiled(x, target), F.multilabel_margin_loss(x, target, reduction=reduction)
    )
    x.view(-1)[3] = torch.nan
    torch.testing.assert_close(
        compiled(x, target),
        F.multilabel_margin_loss(x, target, reduction=reduction),
        equal_nan=True,
    )
    assert bool(compiled.eager_reasons) == (target.dim() == 1 and reduction == "none")


def test_targets_out_of_range():
    compiled = weft.compile(F.multilabel_margin_loss)
    x, target = torch.randn(2, 3), torch.tensor([[0, -1, 3], [0, 1, 2]])
    with pytest.raises(RuntimeError, match="out of range"):
        compiled(x, target)
