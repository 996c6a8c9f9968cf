# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models that can be measured, by name: those of the examples and more.

To add one, add a function that returns a `Case` to `MODELS`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from examples import models
from examples.models import Case


def gpt2(length: int = 128) -> Case:
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(GPT2Config(use_cache=False)).eval()
    ids = torch.randint(model.config.vocab_size, (1, length))
    return Case(f"GPT-2, {length} tokens", model, (ids,))


def resnet50() -> Case:
    from transformers import ResNetConfig, ResNetForImageClassification

    model = ResNetForImageClassification(ResNetConfig()).eval()
    return Case("ResNet-50, batch 1", model, (torch.randn(1, 3, 224, 224),))


MODELS: dict[str, Callable[[], Case]] = {
    "bert": models.MODELS["bert"],
    "bert-b8": models.MODELS["bert-b8"],
    "minilm": models.MODELS["minilm"],
    "gpt2": gpt2,
    "resnet50": resnet50,
    "mlp-b1": lambda: models.mlp(1),
    "mlp-b64": lambda: models.mlp(64),
    "conv-b1": lambda: models.conv_net(1),
    "conv-b64": lambda: models.conv_net(64),
}
