# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What repeated layers add to a program: calls, not kernels."""

import json

import pytest
import torch

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
