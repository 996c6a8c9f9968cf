# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A user's names win over those that weft.compile adds to a module."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

import weft

pytestmark = pytest.mark.usefixtures("no_grad")

x = torch.linspace(-1, 1, 12).reshape(3, 4)


class Named(nn.Module):
    """A model whose names are those of a compiled module's face, and of its class."""

    original = "mine"
    _hold = _held = _adopt = "mine"

    def __init__(self) -> None:
        super().__init__()
        self.stats = nn.Linear(4, 4)
        self.report = nn.Parameter(torch.ones(4))
        self.register_buffer("ir", torch.ones(4))
        self.face = self.options = self.settings = self.eager_reasons = "mine"

    @property
    def artifact_path(self) -> str:
        return "mine"

    def profile(self) -> str:
        return "mine"

    def recompile(self) -> str:
        return "mine"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.stats(x) * self.report + self.ir


@pytest.mark.parametrize("inplace", [False, True])
def test_the_users_names_win(inplace):
    net = Named().eval()
    expected = net(x)
    compiled = weft.compile(net, inplace=inplace)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), expected)
    names = ["original", "face", "options", "settings", "eager_reasons", "artifact_path"]
    assert {getattr(compiled, name) for name in [*names, "_hold", "_held", "_adopt"]} == {"mine"}
    assert compiled.profile() == compiled.recompile() == "mine"
    assert isinstance(compiled.stats, nn.Linear) and compiled.ir.shape == compiled.report.shape
    text = io.StringIO()
    weft.report(compiled, text)
    assert "f32[3, 4]" in text.getvalue()
    assert weft.stats(compiled)["graphs"] == 1
    assert "weft." in weft.ir(compiled) and weft.artifact_path(compiled).exists()
    assert weft.profile(compiled, x, repeats=1).kernels
