# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.recurrent_ladder`: an LSTM as a loop of Python, by one pass after another.

Each rung leaves out fewer passes (`weft.compile(without=...)`), and is measured in turns with
`nn.LSTM`, PyTorch's own op for it. Slices of the gates are read where they lie as soon as there is
fusion.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import weft
from weft import _core
from weft.benchmark.measure import interleaved

# What a rung adds to the ones before it.
RUNGS = {
    "plain graph": (),
    "fusion, strided gates": ("weft-fuse-kernels",),
    "joined products": ("weft-join-products",),
    "scan": ("weft-roll-loops",),
    "batched matmul": ("weft-batch-steps", "weft-merge-matmuls"),
    "tree matmul": ("weft-sink-sums",),
    "prepared weights": ("weft-hoist-invariants", "weft-hoist-bind"),
    "unrolled steps": ("weft-unroll-loops",),  # elementwise ones alone: level for an LSTM
}


class LSTM(nn.Module):
    """With the parameters of an `nn.LSTM` of one layer."""

    def __init__(self, like: nn.LSTM) -> None:
        super().__init__()
        self.width = like.hidden_size
        self.enter, self.bias = like.weight_ih_l0, like.bias_ih_l0
        self.recall, self.other_bias = like.weight_hh_l0, like.bias_hh_l0

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        """xs: (steps, batch, inputs). To the hidden states, (steps, batch, width)."""
        hidden = cell = xs.new_zeros(xs.shape[1], self.width)
        outputs = []
        for x in xs.unbind(0):
            gates = x @ self.enter.t() + self.bias + hidden @ self.recall.t() + self.other_bias
            enter, keep, new, leave = gates.chunk(4, 1)
            cell = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(cell)
            outputs.append(hidden)
        return torch.stack(outputs)


def rungs() -> dict[str, tuple[str, ...]]:
    """The passes that each rung leaves out."""
    left, found = [name for names in RUNGS.values() for name in names], {}
    for rung, names in RUNGS.items():
        left = [name for name in left if name not in names]
        found[rung] = tuple(left)
    return found


def calls_of(
    net: nn.LSTM, xs: torch.Tensor, training: bool
) -> dict[str, Callable[[], torch.Tensor]]:
    """By name what runs a rung once, and gives its hidden states; nn.LSTM is the last."""

    def called(program: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], torch.Tensor]:
        def call() -> torch.Tensor:
            with torch.set_grad_enabled(training):
                outputs = program(xs)
                if training:
                    outputs.sum().backward()
            return outputs

        return call

    loop = LSTM(net)
    calls = {name: called(weft.compile(loop, without=left)) for name, left in rungs().items()}
    return {**calls, "torch, nn.LSTM": called(lambda xs: net(xs)[0])}


def rates(steps: int, batch: int, width: int, training: bool, rounds: int) -> dict[str, float]:
    """GFLOP/s of the matmuls of each rung and of nn.LSTM; those of a backward are twice as many.

    Raises: AssertionError, where results differ from nn.LSTM's.
    """
    torch.manual_seed(0)
    net, xs = nn.LSTM(width, width), torch.randn(steps, batch, width)
    calls = calls_of(net, xs, training)
    expected = calls["torch, nn.LSTM"]()
    for call in calls.values():
        torch.testing.assert_close(call(), expected, rtol=1e-4, atol=1e-5)
    seconds = interleaved(calls, rounds)
    operations = steps * batch * 2 * width * 4 * width * 2 * (3 if training else 1)
    return {name: operations / each / 1e9 for name, each in seconds.items()}


def main() -> None:
    from benchmarks.ladder_chart import draw

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/local"))
    options = parser.parse_args()
    shape = f"T{options.steps} B{options.batch} H{options.width}"
    threads = weft.get_num_threads()
    peak = _core.measure_peak_flops(threads) / 1e9
    table, document = Table("rung", "forward, GFLOP/s", "with backward, GFLOP/s"), {}
    for way, training in (("forward", False), ("with backward", True)):
        document[way] = rates(options.steps, options.batch, options.width, training, options.rounds)
    for name, forward in document["forward"].items():
        table.add_row(name, f"{forward:.1f}", f"{document['with backward'][name]:.1f}")
    Console().print(table)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "recurrent-ladder.json").write_text(json.dumps(document, indent=1), "utf-8")
    for way, found in document.items():
        caption = f"LSTM as a loop of Python, {way}, {shape}, GFLOP/s on {threads} threads"
        draw(found, peak, caption, options.folder / f"recurrent-ladder-{way.split()[-1]}.svg")


if __name__ == "__main__":
    main()
