# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The demo's models by name, each with the arguments of one call."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from examples.fashion_mnist import ConvNet, Mlp
from weft.benchmark.case import Case

IMAGES_PER_CALL = 64


def mlp(batch: int = IMAGES_PER_CALL) -> Case:
    return classifier(Mlp().eval(), f"MLP 784-128-10, batch {batch}", batch)


def conv_net(batch: int = IMAGES_PER_CALL) -> Case:
    return classifier(ConvNet().eval(), f"small conv net, batch {batch}", batch)


def classifier(module: nn.Module, title: str, batch: int) -> Case:
    return Case(title, module, (torch.rand(batch, 1, 28, 28),))


def minilm(length: int = 128) -> Case:
    from examples.sentences import load_encoder

    mask = torch.ones(1, length, dtype=torch.int64)
    mask[:, length - length // 8 :] = 0  # as after padding
    ids = torch.randint(1000, 30_522, (1, length)) * mask
    return Case(f"MiniLM encoder, {length} tokens", load_encoder(), (ids, mask))


def bert(batch: int, length: int = 128) -> Case:
    from examples.bert import bert_base, token_ids

    title = f"BERT-base, {length} tokens, batch {batch}"
    return Case(title, bert_base(), (token_ids(batch, length),))


MODELS: dict[str, Callable[[], Case]] = {
    "mlp": mlp,
    "conv": conv_net,
    "minilm": minilm,
    "bert": lambda: bert(1),
    "bert-b8": lambda: bert(8),
}


def build(name: str, models: dict[str, Callable[[], Case]] = MODELS) -> Case:
    """The same weights and arguments in every process."""
    torch.manual_seed(0)
    return models[name]()
