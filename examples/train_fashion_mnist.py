# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a classifier of Fashion-MNIST twice, by PyTorch and by one program per step, from the same
weights on the same batches, and prints both curves and times.

    .venv/bin/python -m examples.train_fashion_mnist --model mlp --steps 500
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

import weft
from examples.fashion_mnist import ConvNet, Mlp, load, predictions
from examples.training_chart import draw

MODELS = {"mlp": Mlp, "cnn": ConvNet}
_ROWS = 10  # of the printed curve
# Steps in a row: as in training, each but the first finds its weights and moments in the caches,
# from which the other model's drive them out.
_TURN = 10

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass
class Curve:
    """losses, seconds: of each step."""

    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def make(self, step: Step, images: torch.Tensor, labels: torch.Tensor) -> None:
        start = time.perf_counter()
        loss = step(images, labels)
        self.losses.append(float(loss))
        self.seconds.append(time.perf_counter() - start)


def eager_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> Step:
    def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def train_both(
    make: Callable[[], nn.Module],
    images: torch.Tensor,
    labels: torch.Tensor,
    steps: int,
    batch: int = 64,
    seed: int = 0,
) -> tuple[tuple[nn.Module, nn.Module], tuple[Curve, Curve], weft.compiled_step.CompiledStep]:
    """By PyTorch and by Weft, a few steps of each in turn, with AdamW. The models, the curves, and
    what makes Weft's steps."""
    models = []
    for _ in range(2):
        torch.manual_seed(seed)
        models.append(make().to(images.dtype))
    eager, compiled = models
    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-3) for model in models]
    own = weft.compile_step(compiled, nn.functional.cross_entropy, optimizers[1])
    curves = Curve(), Curve()
    rows = torch.Generator().manual_seed(seed)
    for first in range(0, steps, _TURN):
        batches = [
            torch.randint(len(images), (batch,), generator=rows)
            for _ in range(min(_TURN, steps - first))
        ]
        for curve, step in zip(curves, (eager_step(eager, optimizers[0]), own)):
            for chosen in batches:
                curve.make(step, images[chosen], labels[chosen])
    return (eager, compiled), curves, own


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    model.eval()
    with torch.inference_mode():
        found = torch.cat(list(predictions(model, images, 1000)))
    return (found == labels).double().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--chart", type=Path, help="an SVG of both curves and times")
    options = parser.parse_args()
    models, curves, own = train_both(MODELS[options.model], *load("train"), options.steps)
    print("step   PyTorch      Weft   (loss, mean since the row above)")
    stride = max(options.steps // _ROWS, 1)
    for end in range(stride, options.steps + 1, stride):
        means = [statistics.mean(curve.losses[end - stride : end]) for curve in curves]
        print(f"{end:4}  {means[0]:8.4f}  {means[1]:8.4f}")
    test = load("t10k")
    medians = [1e3 * statistics.median(curve.seconds) for curve in curves]
    print(f"accuracy: {accuracy(models[0], *test):.4f} and {accuracy(models[1], *test):.4f}")
    print(f"ms a step: {medians[0]:.2f} and {medians[1]:.2f}, {medians[0] / medians[1]:.2f} ×")
    print(f"{own.steps} steps by one program, {own.in_parts} in three parts")
    if options.chart is not None:
        names = "PyTorch", "Weft"
        losses = {name: curve.losses for name, curve in zip(names, curves)}
        draw(losses, {name: curve.seconds for name, curve in zip(names, curves)}, options.chart)


if __name__ == "__main__":
    main()
