# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results lie in memory as in eager mode, whatever the fakes of a trace say of them, and so does
what is made of them: numbers are drawn in the order of memory."""

import pytest
import torch
from torch.nn.functional import (
    batch_norm,
    conv3d,
    conv_transpose3d,
    cross_entropy,
    dropout,
    huber_loss,
    nll_loss,
)

import weft
from weft.capture.exported_facts import strides_of
from weft.frontend import asking, lower


@pytest.fixture(autouse=True)
def unverified(monkeypatch):
    monkeypatch.setattr(weft.config, "verify", "off")


def _normalized(x):
    return batch_norm(x.transpose(1, 2), torch.zeros(4), torch.ones(4), training=True)


def _convolutions(x, point, weight, transposed):
    """Of voxels that lie channels last."""
    return (
        conv3d(x, weight).relu(),
        conv3d(x, weight[..., :1, :1, :1]),
        conv3d(point, weight[..., :1, :1, :1]),
        conv_transpose3d(x, transposed).exp(),
        dropout(conv3d(x, weight), 0.5),
    )


def _of_a_norm(x):
    y = _normalized(x)
    return (
        y.exp(),
        dropout(y, 0.5),
        dropout(y.exp().transpose(0, 1), 0.5),
        torch.rand_like(y) + 1,
        torch.bernoulli(y.sigmoid()),
    )


def test_what_is_made_of_a_norm_of_columns_lies_in_rows():
    _agree(_of_a_norm, torch.randn(3, 5, 4))


def test_convolutions_of_voxels_lie_channels_last():
    last = {"memory_format": torch.channels_last_3d}
    x, point = torch.randn(2, 4, 3, 3, 3).to(**last), torch.randn(2, 4, 1, 1, 1).to(**last)
    _agree(_convolutions, x, point, torch.randn(5, 4, 2, 2, 2), torch.randn(4, 5, 1, 1, 1))


def test_losses_of_pixels_lie_in_rows():
    def losses(x, target):
        return (
            cross_entropy(x, target, reduction="none"),
            cross_entropy(x, target, reduction="none", label_smoothing=0.1),
            nll_loss(x, target, reduction="none") * 2,
        )

    _agree(losses, torch.randn(2, 5, 3, 4), torch.randint(5, (2, 4, 3)).mT)


def test_what_is_empty_lies_as_in_eager_mode():
    def made(x, y):
        return huber_loss(x, y, reduction="none"), x.flip(0), x.sort(-1)[0], torch.empty_like(x)

    _agree(made, torch.randn(0, 11)[:, :10:2], torch.randn(0, 5))


def test_pytorch_is_asked_once_for_each_call_of_a_graph(monkeypatch):
    module = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)), torch.nn.GELU())
    program = torch.export.export(module, (torch.randn(2, 4),))
    asked, ask = [], asking._ask
    monkeypatch.setattr(asking, "_ask", lambda *call: asked.append(call[0]) or ask(*call))
    lower(program)
    assert strides_of(program) == ((4, 1),)
    assert len(asked) == 4


def _agree(function, *args):
    torch.manual_seed(1)
    expected = function(*args)
    torch.manual_seed(1)
    for value, found in zip(expected, weft.compile(function)(*args), strict=True):
        assert found.stride() == value.stride()
        torch.testing.assert_close(found, value)
