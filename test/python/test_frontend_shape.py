# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shape, creation, padding and index ops of the frontend against eager PyTorch."""

import pytest
import torch
import torch.nn.functional as F
from frontend_cases import check
from graph_interpreter import run_graph

from weft.frontend import lower

SHAPE = [
    lambda x: x.view(4, 6),
    lambda x: x.reshape(-1, 2),
    lambda x: x.flatten(1),
    lambda x: x.unflatten(2, (2, 2)),
    lambda x: x.expand(5, 2, 3, 4) + 0,
    lambda x: x.permute(2, 0, 1) * 1,
    lambda x: x.transpose(-1, 0) * 1,
    lambda x: x[0].t() + 0,
    lambda x: x.mT + 0,
    lambda x: x.movedim(0, 2) + 0,
    lambda x: x.unsqueeze(1).squeeze(1).squeeze() + 0,
    lambda x: x[:, 1:, ::2] + 0,
    lambda x: x[..., -1] + 0,
    lambda x: x[:, None, -2:-1] + 0,
    lambda x: x.select(1, -1) * 2,
    lambda x: x.narrow(2, 1, 2) * 2,
    lambda x: torch.cat([x, x[:, :1]], 1),
    lambda x: torch.cat([x, torch.ones(2, 1, 4, dtype=torch.int64)], 1),
    lambda x: torch.stack([x, -x], -1),
    lambda x: [t + 0 for t in x.split(2, 1)],
    lambda x: [t + 0 for t in x.split([1, 3], 2)],
    lambda x: x.chunk(3, 2)[1] + 0,
    lambda x: [t + 0 for t in x.unbind(1)],
    lambda x: x.tensor_split(3, 2)[2] + 0,
    lambda x: x.flip(0, 2),
    lambda x: x.roll(1, 2),
    lambda x: x.roll((1, -2), (1, 2)),
    lambda x: x.roll(5),
    lambda x: x.repeat(2, 1, 3, 1),
    lambda x: x.repeat_interleave(2, 1),
    lambda x: x.tile(2),
    lambda x: x.tril() + x.triu(1),
    lambda x: x[0].diagonal() + 0,
    lambda x: x.diagonal(1, 2, 1) + 0,
    lambda x: F.pad(x, (1, 2, 0, 3), value=2.5),
    lambda x: F.pad(x, (-1, 2)),
    lambda x: F.pad(x, (2, 1), mode="reflect"),
    lambda x: F.pad(x, (2, 1), mode="replicate"),
    lambda x: F.pad(x[None], (2, 1, 1, 0), mode="circular"),
    lambda x: F.pixel_shuffle(x.reshape(1, 4, 2, 3), 2),
    lambda x: F.interpolate(x[None], scale_factor=2),
    lambda x: F.interpolate(x[None], size=(6, 8), mode="bilinear", align_corners=False),
    lambda x: F.interpolate(x[None], size=(5, 7), mode="bilinear", align_corners=True),
    lambda x: F.interpolate(x[None], size=(5, 7)),
    lambda x: F.unfold(x[None], 2),
    lambda x: x.new_zeros(2, 2) + x.new_ones(2, 2) + torch.full_like(x[0, :2, :2], 3),
    lambda x: torch.arange(2, 9, 3) + torch.arange(3),
    lambda x: torch.arange(0.0, 1.0, 0.1) * torch.arange(10),
    lambda x: torch.arange(0, 6, 2.0, dtype=torch.int64) + 1,
    lambda x: torch.linspace(-1, 1, 7) + torch.zeros(7),
    lambda x: torch.eye(3, 4) + torch.ones(3, 4) + torch.full((), 2.0),
    lambda x: torch.tensor([1.0, 2.0, 3.0, 4.0]) + x,
    lambda x: x.contiguous().clone().detach() + 0,
    lambda x: torch.outer(x[0, 0], x[0, 1]),
    lambda x: torch.meshgrid(x[0, 0], x[1, 0], indexing="ij")[0] + 0,
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", SHAPE)
def test_shape(function):
    check(function, torch.randn(2, 3, 4))


def test_scatter_into_slices():
    def function(x, y):
        z = x.clone()
        z[:, 1] = y
        z[:, :, 2:] = 0
        z[0].fill_(3)
        return z

    check(function, torch.randn(2, 3, 4), torch.randn(2, 4))


INDEX = [
    lambda x, i: F.embedding(i % 3, x[0]),
    lambda x, i: x[i % 2],
    lambda x, i: x[:, i[0] % 3],
    lambda x, i: x[:, i % 3, i % 4],
    lambda x, i: x[i % 2, :, i % 4],
    lambda x, i: x[-1 - i % 2, i[0] % 3],
    lambda x, i: x.index_select(1, i[0] % 3),
    lambda x, i: x.gather(2, (i % 4)[:, :, None].expand(2, 2, 3)),
    lambda x, i: x.take_along_dim((i % 4)[:, None].expand(2, 3, 2), 2),
    lambda x, i: x.take_along_dim((i % 3)[:1, :, None] - 3, 1).exp(),
    lambda x, i: x.take_along_dim((i % 3)[..., None], 1) + 1,
    lambda x, i: x.take_along_dim(i.flatten() % 4) + x[:, :1].take_along_dim(i[..., None], 2),
    lambda x, i: x[torch.arange(2), torch.arange(2)],
    lambda x, i: x[:, torch.tensor([2, 0])],
    lambda x, i: x.index_fill(1, i[0] % 3, 7.0),
]


@pytest.mark.parametrize("function", INDEX)
def test_index(function):
    check(function, torch.randn(2, 3, 4), torch.tensor([[0, 1], [3, 2]]))


class Pick(torch.nn.Module):
    def forward(self, table, index):
        return table[index], torch.nn.functional.embedding(index.abs(), table)


def test_indices_out_of_range_are_refused():
    table = torch.randn(5, 2)
    lowered = lower(torch.export.export(Pick(), (table, torch.tensor([1]))))
    for index in (-5, 4):
        run_graph(lowered.graph, [table, torch.tensor([index % 5])])
    for index in (-6, 5):
        with pytest.raises(AssertionError, match="IndexError: index"):
            run_graph(lowered.graph, [table, torch.tensor([index])])


def test_known_indices_need_no_check():
    lowered = check(lambda x: x[torch.arange(3) + 1], torch.randn(5))
    assert b"weft.assert" not in lowered.graph
