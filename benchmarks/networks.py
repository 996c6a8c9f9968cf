# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks that no library of the project offers, in the shapes that their papers give."""

from __future__ import annotations

import torch
from torch import nn


class MixerBlock(nn.Module):
    """(batch, tokens, channels) to the same."""

    def __init__(self, tokens: int, channels: int) -> None:
        super().__init__()
        self.token_norm = nn.LayerNorm(channels)
        self.token_mlp = mlp(tokens, tokens * 2, tokens)
        self.channel_norm = nn.LayerNorm(channels)
        self.channel_mlp = mlp(channels, channels * 4, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.token_mlp(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        x = x + mixed
        return x + self.channel_mlp(self.channel_norm(x))


class Mixer(nn.Module):
    """MLP-Mixer S/16 (Tolstikhin et al., 2021): (batch, 3, 224, 224) to (batch, 1000)."""

    def __init__(self, channels: int = 512, depth: int = 8, patch: int = 16) -> None:
        super().__init__()
        tokens = (224 // patch) ** 2
        self.stem = nn.Conv2d(3, channels, patch, patch)
        self.blocks = nn.Sequential(*(MixerBlock(tokens, channels) for _ in range(depth)))
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, 1000)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stem(image).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


class DoubleConv(nn.Sequential):
    """(batch, channels, height, width) to (batch, out, height, width)."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__(
            nn.Conv2d(channels, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
        )


class UNet(nn.Module):
    """U-Net (Ronneberger et al., 2015) with padding: (batch, 3, h, w) to (batch, 2, h, w).

    h and w: multiples of 16. width: channels of the first level, a paper's 64.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        widths = [width << level for level in range(5)]
        self.down = nn.ModuleList(
            DoubleConv(a, b) for a, b in zip([3, *widths[:-1]], widths, strict=True)
        )
        steps = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in steps)
        self.merge = nn.ModuleList(DoubleConv(a, b) for a, b in steps)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


class Dlrm(nn.Module):
    """DLRM (Naumov et al., 2019): (batch, 13) floats, (batch, tables) ids to (batch, 1)."""

    def __init__(self, tables: int = 26, rows: int = 10_000, width: int = 64) -> None:
        super().__init__()
        self.bottom = nn.Sequential(mlp(13, 512, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(mlp(width + pairs, 512, 256), nn.ReLU(), nn.Linear(256, 1))
        row, column = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("row", row)
        self.register_buffer("column", column)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        rows = [table(ids[:, i]) for i, table in enumerate(self.tables)]
        features = torch.stack([x, *rows], 1)
        products = torch.bmm(features, features.transpose(1, 2))
        return self.top(torch.cat([x, products[:, self.row, self.column]], 1)).sigmoid()


class GruCells(nn.Module):
    """A GRU cell over the steps of (steps, batch, width), unrolled: to (batch, width)."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.zeros_like(x[0])
        for step in x:
            hidden = self.cell(step, hidden)
        return hidden


def mlp(width: int, hidden: int, out: int) -> nn.Sequential:
    """(..., width) to (..., out) through one hidden layer with GELU."""
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, out))
