# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT layer by layer: PyTorch, Weft as it compiles, and Weft with tuned schedules, in one table.

    python -m examples.bert_layers [--records FILE] [--tokens N] [--threads N] [--trials N]

The parts of one encoder layer of BERT-base, the whole layer, and what twelve of them take. Tuning
takes some minutes the first time; what it has measured is kept in the file of records.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertLayer

import weft
from weft.benchmark.measure import PAUSE, timed_calls

LAYERS = 12


@dataclass(frozen=True)
class Part:
    name: str
    module: nn.Module
    inputs: tuple[torch.Tensor, ...]


class Attention(nn.Module):
    """Scores, softmax and values of all heads, between the projections."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (q, k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return mixed.transpose(1, 2).flatten(2)


def parts(tokens: int, config: BertConfig | None = None) -> list[Part]:
    """Of an encoder layer with random weights, for one sequence; the layer itself last."""
    torch.manual_seed(0)
    config = config or BertConfig(attn_implementation="sdpa")
    layer = BertLayer(config).eval()
    hidden = torch.randn(1, tokens, config.hidden_size)
    wide = torch.randn(1, tokens, config.intermediate_size)
    own = layer.attention.self
    return [
        Part("query, key or value", own.query, (hidden,)),
        Part("attention", Attention(config.num_attention_heads), (hidden, hidden, hidden)),
        Part("projection, sum, norm", layer.attention.output, (hidden, hidden)),
        Part("up, GELU", layer.intermediate, (hidden,)),
        Part("down, sum, norm", layer.output, (wide, hidden)),
        Part("layer", layer, (hidden,)),
    ]


def measured(part: Part, records: Path, rounds: int, seconds: float) -> dict[str, float]:
    """The least seconds of a call: "PyTorch", "untuned", "tuned". All take turns."""
    systems: dict[str, Any] = {
        "PyTorch": part.module,
        "untuned": weft.compile(part.module),
        "tuned": weft.compile(part.module, records=records),
    }
    expected = part.module(*part.inputs)
    for system in systems.values():
        for _ in range(2):  # the first call is compared with PyTorch's
            found = system(*part.inputs)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    least = dict.fromkeys(systems, float("inf"))
    for _ in range(rounds):
        for name, system in systems.items():
            time.sleep(PAUSE)
            times = timed_calls(lambda run=system: run(*part.inputs), seconds)
            least[name] = min(least[name], *times)
    return least


def table_of(rows: list[tuple[str, dict[str, float]]]) -> Table:
    table = Table("", title="BERT-base, ms")
    for name in ("PyTorch", "untuned", "tuned", "PyTorch ÷ tuned", "untuned ÷ tuned"):
        table.add_column(name, justify="right")
    for name, times in rows:
        ours = times["tuned"]
        table.add_row(
            name,
            *(f"{times[system] * 1e3:.3f}" for system in ("PyTorch", "untuned", "tuned")),
            f"{times['PyTorch'] / ours:.2f}",
            f"{times['untuned'] / ours:.3f}",
        )
    return table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=Path, default=Path("bert-layers.db"))
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=weft.get_num_threads())
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each system in a round")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    rows = []
    with torch.no_grad():
        for part in parts(options.tokens):
            weft.tune.run(
                part.module,
                *part.inputs,
                records=options.records,
                trials=options.trials,
                progress="bars" if sys.stdout.isatty() else None,
            )
            times = measured(part, options.records, options.rounds, options.seconds)
            rows.append((part.name, times))
    layer = rows[-1][1]
    rows.append((f"{LAYERS} layers", {name: each * LAYERS for name, each in layer.items()}))
    Console(width=None if sys.stdout.isatty() else 100).print(table_of(rows))


if __name__ == "__main__":
    main()
