# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What repeated layers and values with many readers add to a program, and to its compilation."""

import json

import pytest
import torch
import torch.nn.functional as F
from compiled_cases import check

import weft
from weft import _core

nn = torch.nn
pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")


def encoder(layers):
    return nn.Sequential(
        *(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True) for _ in range(layers))
    ).eval()


def residual(layers):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1)
            )

        def forward(self, x):
            return torch.relu(x + self.inner(x))

    return nn.Sequential(*(Block() for _ in range(layers))).eval()


def entries(model, x):
    compiled = weft.compile(model)
    compiled(x)
    return json.loads(_core.Artifact.load(compiled.artifact_path).manifest)["entries"]


@pytest.mark.parametrize(
    ("make", "shape"), [(encoder, (2, 9, 32)), (residual, (1, 8, 7, 7))], ids=["encoder", "conv"]
)
def test_layers_share_their_kernels(make, shape):
    few, many = (entries(make(layers), torch.randn(shape)) for layers in (4, 8))
    assert few.keys() == many.keys()
    for name in few:
        calls = [[call["kernel"] for call in entry["calls"]] for entry in (few[name], many[name])]
        assert len(set(calls[0])) == len(set(calls[1]))
        assert len(calls[0]) < len(calls[1]) <= 2 * len(calls[0])


def doubled(x):
    """2 ** 40 paths lead to `x`, whoever walks them all never ends."""
    for _ in range(40):
        x = x + x
    return x * 2.0**-40


@pytest.mark.parametrize(
    "program",
    [
        lambda x, row: x + doubled(row),
        lambda x, row: torch.softmax(doubled(x), -1) + row,
        lambda x, row: doubled(x @ x.T) + row[:5],
        lambda x, row: F.pad(doubled(x), (1, 2)) + F.pad(doubled(row), (2, 1)),
        lambda x, row: torch.cat([doubled(x), row[None]]).cumsum(0),
        lambda x, row: F.group_norm(doubled(x)[None, :4], 2, row[:4], row[4:8]),
        lambda x, row: x[doubled(row.abs()).long() % 5],
    ],
    ids=["row", "softmax", "product", "padding", "concatenation", "group norm", "gather"],
)
def test_shared_values_are_looked_at_once(program):
    check(program, torch.randn(5, 37), torch.randn(37))
