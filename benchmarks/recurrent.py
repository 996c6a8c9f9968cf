# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.recurrent [NAME...]`: recurrent modules and loops over time beside eager.

Forward, and forward with backward, in turns with PyTorch, and how long a compilation takes
beside capture. Sizes are steps, batch, and width of input and state.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn

import weft
from weft.benchmark.measure import interleaved


class LayerNormLSTM(nn.Module):
    """An LSTM with a layer norm on its gates, as a loop of Python."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.enter, self.recall = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
        self.norm = nn.LayerNorm(4 * width)

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        """xs: (steps, batch, width). To the hidden states, of the same shape."""
        hidden = cell = xs.new_zeros(xs.shape[1], self.width)
        outputs = []
        for x in xs.unbind(0):
            gates = self.norm(self.enter(x) + self.recall(hidden))
            enter, keep, leave, new = gates.chunk(4, 1)
            cell = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(cell)
            outputs.append(hidden)
        return torch.stack(outputs)


class MinGRU(nn.Module):
    """Feng et al., "Were RNNs All We Needed?", 2024, section 3.1, as a loop of Python."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.gate, self.candidate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        """xs: (steps, batch, width). To the hidden states, of the same shape."""
        hidden, outputs = xs.new_zeros(xs.shape[1], self.width), []
        for x in xs.unbind(0):
            gate = torch.sigmoid(self.gate(x))
            hidden = (1 - gate) * hidden + gate * self.candidate(x)
            outputs.append(hidden)
        return torch.stack(outputs)


class SLSTM(nn.Module):
    """Beck et al., "xLSTM", 2024, equations 8 to 17: exponential gates, as a loop of Python."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.enter, self.recall = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        """xs: (steps, batch, width). To the hidden states, of the same shape."""
        hidden = memory = count = xs.new_zeros(xs.shape[1], self.width)
        largest, outputs = hidden - 10, []
        for x in xs.unbind(0):
            new, enter, keep, leave = (self.enter(x) + self.recall(hidden)).chunk(4, 1)
            keep = F.logsigmoid(keep) + largest
            largest = torch.maximum(keep, enter)
            enter, keep = torch.exp(enter - largest), torch.exp(keep - largest)
            memory, count = keep * memory + enter * torch.tanh(new), keep * count + enter
            hidden = torch.sigmoid(leave) * memory / torch.clamp(count, min=1)
            outputs.append(hidden)
        return torch.stack(outputs)


class Policy(nn.Module):
    """A recurrent actor and critic, whose state is reset where an episode has ended."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.cell = width, nn.GRUCell(width, width)
        self.actor, self.critic = nn.Linear(width, 8), nn.Linear(width, 1)

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        """xs: (steps, batch, width); the first of the width tells of an end where it is above 2.
        To the log-probabilities of 8 actions with the value behind them, (steps, batch, 9)."""
        done = (xs[:, :, :1] > 2).to(xs.dtype)
        hidden, outputs = xs.new_zeros(xs.shape[1], self.width), []
        for t in range(len(xs)):
            hidden = self.cell(xs[t], hidden * (1 - done[t]))
            actions = torch.log_softmax(self.actor(hidden), 1)
            outputs.append(torch.cat([actions, self.critic(hidden)], 1))
        return torch.stack(outputs)


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[int], nn.Module]
    steps: int
    batch: int
    width: int


CASES = [
    Case("lstm", lambda width: nn.LSTM(width, width), 100, 64, 512),
    Case("lstm-b1", lambda width: nn.LSTM(width, width), 100, 1, 512),
    Case("gru", lambda width: nn.GRU(width, width), 100, 64, 512),
    Case("gru-b1", lambda width: nn.GRU(width, width), 100, 1, 512),
    Case("layer-norm-lstm", LayerNormLSTM, 100, 64, 512),
    Case("layer-norm-lstm-b16", LayerNormLSTM, 100, 16, 256),
    Case("min-gru", MinGRU, 100, 16, 256),
    Case("slstm", SLSTM, 100, 16, 256),
    Case("policy", Policy, 256, 32, 128),
]


def _forward(net: nn.Module, x: torch.Tensor) -> Callable[[], object]:
    def call():
        with torch.no_grad():
            return net(x)

    return call


def _training(net: nn.Module, x: torch.Tensor) -> Callable[[], object]:
    def call():
        result = net(x)
        (result if isinstance(result, torch.Tensor) else result[0]).sum().backward()

    return call


def _measured(case: Case, rounds: int) -> list[list[str]]:
    """A row each for the forward and the training of a case."""
    net = case.make(case.width)
    x = torch.randn(case.steps, case.batch, case.width)
    rows = []
    for what, call_of in (("forward", _forward), ("with backward", _training)):
        compiled = weft.compile(net)
        calls = {"eager": call_of(net, x), "weft": call_of(compiled, x)}
        start = time.perf_counter()
        calls["weft"]()
        first, stats = time.perf_counter() - start, weft.stats(compiled)
        seconds = interleaved(calls, rounds)
        rows.append(
            [
                f"{case.name} T{case.steps} B{case.batch} H{case.width}",
                what,
                *(f"{seconds[name] * 1e3:.2f}" for name in calls),
                f"{seconds['eager'] / seconds['weft']:.2f}",
                f"{stats['capture_seconds']:.2f}",
                f"{stats['compile_seconds']:.2f}",
                f"{first:.1f}",
            ]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(case.name for case in CASES))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    columns = ["case", "what", "eager, ms", "weft, ms", "ratio"]
    table = Table(*columns, "capture, s", "compile, s", "first call, s")
    for case in CASES:
        if not options.names or case.name in options.names:
            for row in _measured(case, options.rounds):
                table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
