# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of our own, which PyTorch knows once in a process, whatever the number of worlds."""

import torch


@torch.library.custom_op("capture_corpus::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@doubled.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("capture_corpus::increment", mutates_args=("x",))
def increment(x: torch.Tensor) -> None:
    x.add_(1)


@increment.register_fake
def _(x):
    return None
