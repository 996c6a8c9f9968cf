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


@pytest.mark.parametrize("shape", [(17, 5), (3, 1), (6,)])
def test_multi_margin_loss(shape):
    torch.manual_seed(0)
    weight = torch.rand(shape[-1], dtype=torch.float64)
    # Of one row that is not reduced torch's shape function gives an error.
    reductions = ["mean", "sum", "none"][: 1 + len(shape)]

    def losses(x, target):
        return [
            F.multi_margin_loss(x, target, power, margin, by, reduction=reduction)
            for power, margin in ((1, 1.0), (2, 0.3))
            for by in (None, weight.to(x))
            for reduction in reductions
        ]

    compiled = weft.compile(losses, capture="export")
    target = torch.randint(0, shape[-1], shape[:-1])
    for dtype in (torch.float32, torch.float64):
        for holds_nan in (False, True):
            x = torch.randn(shape, dtype=dtype)
            if holds_nan:
                x.view(-1)[::4] = torch.nan
            x.requires_grad_()
            with torch.enable_grad():
                mine, theirs = compiled(x, target), losses(x, target)
                torch.testing.assert_close(mine, theirs, equal_nan=True)
                gradients = [
                    [torch.autograd.grad(y.sum(), x, retain_graph=True)[0] for y in each]
                    for each in (mine, theirs)
                ]
            torch.testing.assert_close(*gradients, equal_nan=True)
    assert not compiled.eager_reasons and weft.stats(compiled)["hits"]
    assert "PyTorch runs" not in str(compiled.explain(x, target))
    with pytest.raises(RuntimeError, match="out of range"):
        compiled(x.detach(), target + shape[-1])


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
