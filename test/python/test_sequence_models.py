# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of characters and a predictor of sines learn as in eager mode."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import weft

TEXT = "the quick brown fox jumps over the lazy dog. "
WIDTH, STEPS = 8, 12


class Characters(nn.Module):
    """Of the next character, from an LSTM cell in a loop."""

    def __init__(self):
        super().__init__()
        self.letters = sorted(set(TEXT))
        self.embed = nn.Embedding(len(self.letters), WIDTH)
        self.cell, self.head = nn.LSTMCell(WIDTH, WIDTH), nn.Linear(WIDTH, len(self.letters))

    def forward(self, ids):
        """ids: (time, batch)."""
        hidden = memory = self.head.weight.new_zeros(ids.shape[1], WIDTH)
        logits = []
        for step in range(len(ids)):
            hidden, memory = self.cell(self.embed(ids[step]), (hidden, memory))
            logits.append(self.head(hidden))
        return torch.stack(logits)

    def batch(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.tensor([self.letters.index(letter) for letter in TEXT * 3])
        starts = [(number * 7 + 11 * row) % len(TEXT) for row in range(3)]
        rows = torch.stack([ids[start : start + STEPS + 1] for start in starts], 1)
        return rows[:-1], rows[1:]

    def loss(self, result, targets):
        return F.cross_entropy(result.flatten(0, 1), targets.flatten())


class Sines(nn.Module):
    """Of the next value, from two LSTM cells, as in PyTorch's example of time sequences."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LSTMCell(1, WIDTH), nn.LSTMCell(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, xs):
        """xs: (batch, time)."""
        zeros = xs.new_zeros(xs.shape[0], WIDTH)
        first, second, outputs = (zeros, zeros), (zeros, zeros), []
        for x in xs.split(1, dim=1):
            first = self.first(x, first)
            second = self.second(first[0], second)
            outputs.append(self.head(second[0]))
        return torch.cat(outputs, 1)

    def batch(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        phases = torch.arange(3, dtype=torch.float64)[:, None] + number
        values = torch.sin(phases + torch.arange(STEPS + 1) / 4.0)
        return values[:, :-1], values[:, 1:]

    def loss(self, result, targets):
        return F.mse_loss(result, targets)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [Characters, Sines])
def test_300_steps(kind):
    torch.manual_seed(0)
    model = kind().double()
    twin = deepcopy(model)
    compiled = weft.compile(model)
    losses = []
    for net, call in ((model, compiled), (twin, twin)):
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        for number in range(300):
            inputs, targets = net.batch(number)
            optimizer.zero_grad()
            loss = net.loss(call(inputs), targets)
            loss.backward()
            optimizer.step()
            if number in (0, 99, 299):
                losses.append(loss.item())
    assert losses[:3] == pytest.approx(losses[3:], rel=1e-6)
    assert losses[2] < 0.5 * losses[0]
    assert weft.stats(compiled)["hits"] >= 299 and not weft.stats(compiled)["breaks"]
