# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.training.numbers`: training beside PyTorch and Inductor.

The systems run in turns, and the medians of their times are compared: a peer's time ÷ Weft's. A
case is forward and backward, or a whole step with its optimizer.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn

import weft
from benchmarks.training.models import Language, WrittenAttention, feed_forward, pre_norm

Step = Callable[[], object]


@dataclass(frozen=True)
class Trained:
    """model, inputs: of a call. loss: of what the model gives. optimizer: of parameters, where the
    whole step counts. settings: of weft.compile. autocast: to bfloat16. penalty: of the gradient
    of the first input, which Inductor refuses."""

    model: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    loss: Callable[..., torch.Tensor]
    optimizer: Callable[..., torch.optim.Optimizer] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    autocast: bool = False
    penalty: bool = False


def _bert_layer(length: int, **settings: Any) -> Trained:
    def model() -> nn.Module:
        return nn.TransformerEncoderLayer(768, 12, 3072, 0.1, "gelu", batch_first=True)

    def inputs() -> tuple[torch.Tensor]:
        return (torch.randn(8, length, 768, requires_grad=True),)

    return Trained(model, inputs, _mean_square, **settings)


def _bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    return _Logits(BertForMaskedLM(BertConfig()))


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return _Logits(GPT2LMHeadModel(config))


def _resnet50() -> nn.Module:
    from transformers import ResNetConfig, ResNetForImageClassification

    return _Logits(ResNetForImageClassification(ResNetConfig(num_labels=1000)))


class _Logits(nn.Module):
    """Of a classifier."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x).logits


class _Embedded(nn.Module):
    """A language model of embeddings, along which its gradient is penalised."""

    def __init__(self) -> None:
        super().__init__()
        # PyTorch's own attention on CPUs has no second derivative.
        layers = [
            pre_norm(128, WrittenAttention(128, 4), feed_forward(128, nn.GELU())) for _ in range(2)
        ]
        self.language = Language(*layers, width=128, vocabulary=512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.language.head(self.language.layers(x))


def _mlp() -> nn.Module:
    layers = [nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    return nn.Sequential(*layers)


def _tokens(batch: int, length: int, vocabulary: int) -> tuple[torch.Tensor]:
    return (torch.randint(0, vocabulary, (batch, length)),)


def _mean_square(found: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return found.square().mean()


def _next_token(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def _same_token(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def _first_class(logits: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64))


PHILOX = {"rng": "philox"}
CASES = {
    "BERT layer B8 S128, philox": _bert_layer(128, settings=PHILOX),
    "BERT layer B8 S128, torch's masks": _bert_layer(128),
    "BERT layer B8 S512, philox": _bert_layer(512, settings=PHILOX),
    "BERT layer B8 S128, bf16, philox": _bert_layer(128, settings=PHILOX, autocast=True),
    "BERT-base B8 S128, step by AdamW": Trained(
        _bert,
        functools.partial(_tokens, 8, 128, 30_522),
        _same_token,
        torch.optim.AdamW,
        PHILOX,
    ),
    "GPT-2 small B1 S1024": Trained(
        _gpt2, functools.partial(_tokens, 1, 1024, 50_257), _next_token
    ),
    "ResNet-50 B16": Trained(_resnet50, lambda: (torch.rand(16, 3, 224, 224),), _first_class),
    "MLP 784-256-256-10 B32, step by AdamW": Trained(
        _mlp, lambda: (torch.rand(32, 784),), _first_class, torch.optim.AdamW
    ),
    "Transformer LM, gradient penalty": Trained(
        _Embedded,
        lambda: (torch.randn(8, 64, 128, requires_grad=True),),
        _mean_square,
        penalty=True,
    ),
}


def eager(case: Trained) -> Step:
    return _in_parts(case, case.model())


def inductor(case: Trained) -> Step | None:
    if case.penalty:
        return None
    return _in_parts(case, torch.compile(case.model()))


def ours(case: Trained) -> Step:
    model = case.model()
    if case.optimizer is None:
        return _in_parts(case, weft.compile(model, **case.settings))
    step = weft.compile_step(model, case.loss, case.optimizer(model.parameters()), **case.settings)
    inputs = case.inputs()
    targets = [each for each in inputs if not each.is_floating_point()]
    return _Whole(step, inputs, targets)


@dataclass(frozen=True)
class _Whole:
    """A whole step by one program."""

    step: Any
    inputs: tuple[Any, ...]
    targets: list[torch.Tensor]

    def __call__(self) -> object:
        return self.step(self.inputs, *self.targets)


def _in_parts(case: Trained, model: Callable[..., Any]) -> Step:
    inputs = case.inputs()
    params = [*model.parameters()]
    optimizer = None if case.optimizer is None else case.optimizer(params)

    def call() -> None:
        for each in (*params, *inputs):
            each.grad = None
        with torch.autocast("cpu", torch.bfloat16, enabled=case.autocast):
            found = model(*inputs)
        loss = case.loss(found.float(), *inputs)
        if case.penalty:
            (slope,) = torch.autograd.grad(loss, inputs[0], create_graph=True)
            loss = loss + (slope.flatten(1).norm(2, 1) - 1).square().mean()
        loss.backward()
        if optimizer is not None:
            optimizer.step()

    return call


SYSTEMS: dict[str, Callable[[Trained], Step | None]] = {
    "eager": eager,
    "inductor": inductor,
    "weft": ours,
}
# The first two of a whole step are compared; then everything is warm.
_WARM = 4


def measured(case: Trained, systems: Sequence[str], rounds: int) -> dict[str, float]:
    """Seconds of a step in each system, the median of `rounds` in turns."""
    steps: dict[str, Step] = {}
    for name in systems:
        torch.manual_seed(0)
        if (made := SYSTEMS[name](case)) is not None:
            steps[name] = made
            for _ in range(_WARM):
                made()
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - start)
    if isinstance(whole := steps.get("weft"), _Whole) and not whole.step.steps:
        raise RuntimeError(f"not one program: {whole.step.stats()['reasons']}")
    return {name: statistics.median(each) for name, each in times.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.training.numbers", description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"parts of names, of {'; '.join(CASES)}")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=[*SYSTEMS])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    peers = [name for name in options.systems if name != "weft"]
    table = Table("case", *(f"{name}, ms" for name in options.systems))
    for name in peers:
        table.add_column(f"{name} ÷ weft")
    for name, case in CASES.items():
        if options.cases and not any(each in name for each in options.cases):
            continue
        seconds = measured(case, options.systems, options.rounds)
        row = [f"{1e3 * seconds[each]:.2f}" if each in seconds else "" for each in options.systems]
        if "weft" in seconds:
            row += [
                f"{seconds[each] / seconds['weft']:.2f}" if each in seconds else ""
                for each in peers
            ]
        table.add_row(name, *row)
    Console().print(table)


if __name__ == "__main__":
    main()
