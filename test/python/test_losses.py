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


@pytest.mark.parametrize("lengths", ["tensors", "numbers"])
def test_ctc_loss_is_part_of_a_program(lengths, monkeypatch):
    """PyTorch's kernel answers, and says what is wrong."""
    monkeypatch.setattr(weft.config, "verify", "off")
    torch.manual_seed(0)
    linear, targets = torch.nn.Linear(4, 6), torch.randint(1, 6, (3, 4))

    def loss(x, targets, steps, sizes):
        if lengths == "numbers":
            steps, sizes = (x.shape[0],) * 3, (4, 3, 2)
        scores = linear(x).log_softmax(-1)
        return F.ctc_loss(scores, targets, steps, sizes, reduction="none", zero_infinity=True)

    compiled = weft.compile(loss, capture="export")
    with torch.enable_grad():
        for count in (12, 12, 9, 14, 10, 3):
            x = torch.randn(count, 3, 4, requires_grad=True)
            given = targets, torch.tensor([count, 3, count - 1]), torch.tensor([4, 3, 2])
            mine, theirs = compiled(x, *given), loss(x, *given)
            torch.testing.assert_close(mine, theirs)
            wanted = [x, *linear.parameters()]
            torch.testing.assert_close(
                *(torch.autograd.grad(each.sum(), wanted) for each in (mine, theirs))
            )
    assert weft.stats(compiled)["hits"] >= 2 and not compiled.eager_reasons
    if lengths == "tensors":
        with pytest.raises(RuntimeError, match="input_lengths"):
            compiled(x, targets, torch.tensor([count + 1] * 3), given[2])
