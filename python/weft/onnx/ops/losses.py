# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses of class labels."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.onnx.table import Node, op


@op("NegativeLogLikelihoodLoss", "ignore_index reduction", since=12)
def nll_loss(node: Node, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    return _loss(node, x, target, weight)


@op("SoftmaxCrossEntropyLoss", "ignore_index reduction", since=12)
def cross_entropy(
    node: Node, x: Tensor, target: Tensor, weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    logarithms = torch.log_softmax(x, 1)
    return _loss(node, logarithms, target, weight), logarithms


def _loss(node: Node, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """x: (n, c, d…) logarithms; target: (n, d…), `ignore_index` where it counts nothing."""
    ignored = node.get("ignore_index")
    target = target.to(torch.int64)
    kept = torch.ones_like(target, dtype=torch.bool) if ignored is None else target != ignored
    places = torch.where(kept, target, torch.zeros_like(target))
    weights = kept.to(x.dtype)
    if weight is not None:
        picked = weight.index_select(0, places.reshape(-1)).reshape(places.shape)
        weights = torch.where(kept, picked, torch.zeros_like(picked))
    picked = torch.gather(x, 1, places.unsqueeze(1)).squeeze(1)
    loss = torch.where(kept, -picked * weights, torch.zeros_like(picked))
    how = node.get("reduction", "mean")
    if how == "none":
        return loss
    return loss.sum() if how == "sum" else loss.sum() / weights.sum()
