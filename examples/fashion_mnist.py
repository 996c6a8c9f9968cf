# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fashion-MNIST: its files, two small classifiers, an epoch of training.

Source: Xiao, Rasul, Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking
machine learning algorithms", 2017; the files are those of Debian's `dataset-fashion-mnist`.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

FOLDER = Path("/usr/share/datasets/fashion-mnist")
CLASSES = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "boot",
)
_UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> np.ndarray:
    """The array of unsigned bytes in a gzipped IDX file.

    Raises: ValueError, if the file holds something else; OSError, if it cannot be read.
    """
    with gzip.open(path) as file:
        data = file.read()
    zeros, kind, rank = struct.unpack_from(">HBB", data)
    if zeros != 0 or kind != _UNSIGNED_BYTE:
        raise ValueError(f"{path}: expected IDX type 0x000008, found {data[:3].hex()}")
    shape = struct.unpack_from(f">{rank}I", data, 4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * rank)
    if values.size != np.prod(shape):
        raise ValueError(f"{path}: expected {np.prod(shape)} bytes, found {values.size}")
    return values.reshape(shape)


def load(part: str, folder: Path = FOLDER) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (n, 1, 28, 28) float32 in 0 … 1 and labels (n) int64; part: train or t10k.

    Raises: FileNotFoundError, if the data set is not installed.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"expected {folder}: install the package dataset-fashion-mnist")
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
    pixels = torch.from_numpy(images.astype(np.float32) / 255).unsqueeze(1)
    return pixels, torch.from_numpy(labels.astype(np.int64))


class Mlp(nn.Sequential):
    """784-128-10."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


class ConvNet(nn.Sequential):
    """Two convolutions of 3 by 3, each with ReLU and a pooling of 2 by 2, then a linear layer."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 10),
        )


def train(
    model: nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor,
    batch: int = 64,
    on_batch: Callable[[int], object] = lambda size: None,
) -> None:
    """One epoch with Adam, in an order drawn from torch's generator, by PyTorch.

    on_batch: told how many images have been learned from.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    model.train()
    for rows in torch.randperm(len(images)).split(batch):
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_batch(len(rows))
    model.eval()


def predictions(
    model: Callable[[torch.Tensor], torch.Tensor], images: torch.Tensor, batch: int
) -> Iterator[torch.Tensor]:
    """The classes of the images, batch by batch."""
    for part in images.split(batch):
        yield model(part).argmax(1)
