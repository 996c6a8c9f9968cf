# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.training.curves`: losses of training by `weft.compile_step` and by PyTorch.

In float64 the two curves are compared with a second curve of PyTorch's, whose batches are the same
in reverse: there sums are added up in another order, and nothing else differs. Dropout draws as
many numbers in each; under one seed the compiled step draws PyTorch's.
"""

from __future__ import annotations

import argparse
import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn

import weft
from benchmarks.training.models import (
    MODELS,
    Attention,
    basic,
    conv_block,
    feed_forward,
    pre_norm,
)

_BATCH, _IMAGES = 32, 512


@dataclass(frozen=True)
class Curve:
    """model, loss: of a batch's inputs and targets. images: whether targets are images. optimizer:
    of parameters. reverses: its sums may be reordered by reversing the batch, which where dropout
    draws for every place would give other masks."""

    model: Callable[[], nn.Module]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]
    targets: str = "labels"
    reverses: bool = True


def _sgd(params: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, 0.05, momentum=0.9)


def _adamw(params: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(params, 1e-3)


def _mlp() -> nn.Module:
    layers = [nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)]
    return nn.Sequential(nn.Flatten(), *layers)


def _cnn() -> nn.Module:
    layers = [conv_block(1, 8), nn.MaxPool2d(2), conv_block(8, 16), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(784, 10))


def _resnet() -> nn.Module:
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)]
    return nn.Sequential(conv_block(1, 8, stride=2), basic(8), *head)


class Patches(nn.Module):
    """A Transformer with dropout over the rows of an image."""

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(28, 32), nn.Linear(32, 10)
        self.drop = nn.Dropout(dropout)
        hidden = nn.Sequential(feed_forward(32, nn.GELU()), nn.Dropout(dropout))
        self.block = pre_norm(32, Attention(32, 4, dropout=dropout), hidden)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.drop(self.embed(images[:, 0]))).mean(1))


CURVES = {
    "mlp": Curve(_mlp, F.cross_entropy, _sgd),
    "cnn": Curve(_cnn, F.cross_entropy, _sgd),
    "resnet": Curve(_resnet, F.cross_entropy, _sgd),
    "transformer": Curve(Patches, F.cross_entropy, _adamw, reverses=False),
    "autoencoder": Curve(lambda: MODELS["autoencoder"]()[0], F.mse_loss, _adamw, "images"),
}


def data(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Images with a bright row where the label says."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(_IMAGES) % 10
    images = torch.rand(_IMAGES, 1, 28, 28, generator=generator, dtype=torch.float64) / 2
    images[range(_IMAGES), 0, 2 * labels] += 0.5
    return images.to(dtype), labels


def losses_of(
    curve: Curve,
    steps: int,
    *,
    compiled: bool = False,
    reverse: bool = False,
    dtype: torch.dtype = torch.float64,
    **settings,
) -> tuple[list[float], nn.Module]:
    """Of each step, and the model behind the last one."""
    torch.manual_seed(0)
    images, labels = data(dtype)
    model = copy.deepcopy(curve.model()).to(dtype)
    optimizer = curve.optimizer(model.parameters())
    step = None
    if compiled:
        step = weft.compile_step(model, curve.loss, optimizer, **settings)
    losses = []
    order = torch.Generator().manual_seed(1)
    for number in range(steps):
        chosen = torch.randperm(_IMAGES, generator=order)[:_BATCH]
        chosen = chosen.flip(0) if reverse else chosen
        targets = images[chosen] if curve.targets == "images" else labels[chosen]
        torch.manual_seed(number)
        if step is not None:
            losses.append(step(images[chosen], targets).item())
            continue
        optimizer.zero_grad()
        value = curve.loss(model(images[chosen]), targets)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    if step is not None and step.steps < steps - 3:
        warnings.warn(f"not one program: {step.reasons}", stacklevel=2)
    return losses, model


def distance(first: Sequence[float], second: Sequence[float]) -> float:
    return max(abs(x - y) for x, y in zip(first, second, strict=True))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.training.curves", description=__doc__)
    parser.add_argument("curves", nargs="*", help=f"of {', '.join(CURVES)}; all by default")
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args(arguments)
    table = Table("model", "first loss", "last loss", "Weft to PyTorch", "PyTorch, sums reordered")
    for name in options.curves or CURVES:
        curve = CURVES[name]
        eager, _ = losses_of(curve, options.steps)
        own, _ = losses_of(curve, options.steps, compiled=True)
        other = "its masks would differ"
        if curve.reverses:
            again, _ = losses_of(curve, options.steps, reverse=True)
            other = f"{distance(eager, again):.1e}"
        apart = f"{distance(eager, own):.1e}"
        table.add_row(name, f"{eager[0]:.4f}", f"{eager[-1]:.4f}", apart, other)
    Console().print(table)


if __name__ == "__main__":
    main()
