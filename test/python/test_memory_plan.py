# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arena of each model is as small as it can be, or close: no plan takes less than the
most bytes that are alive at once."""

import json

import pytest
import torch
import transformers
from counting import latest

import weft

pytestmark = pytest.mark.usefixtures("no_grad", "compiled_only")

nn = torch.nn


def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), (
        torch.randn(64, 784),
    )


def cnn():
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 49, 10)), (
        torch.randn(8, 1, 28, 28),
    )


def encoder(batch: int, **sizes: int):
    config = transformers.BertConfig(num_hidden_layers=2, vocab_size=1000, **sizes)
    tokens = torch.randint(0, 1000, (batch, 128))
    return transformers.BertModel(config), (tokens, torch.ones_like(tokens))


def bert():
    return encoder(8)


def minilm():
    return encoder(1, hidden_size=384, intermediate_size=1536)


def gpt2():
    config = transformers.GPT2Config(n_layer=2, vocab_size=1000, use_cache=False)
    return transformers.GPT2Model(config), (torch.randint(0, 1000, (1, 128)),)


def resnet():
    config = transformers.ResNetConfig()  # ResNet-50
    return transformers.ResNetForImageClassification(config), (torch.randn(1, 3, 64, 64),)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", [mlp, cnn, minilm, bert, gpt2, resnet], ids=lambda m: m.__name__)
def test_arena_is_close_to_its_bound(make):
    model, inputs = make()
    compiled = weft.compile(model.eval())
    compiled(*inputs)
    for entry in json.loads(latest(compiled).build.artifact.manifest)["entries"].values():
        assert entry["liveness_bound"] <= entry["arena_bytes"]
        assert entry["arena_bytes"] <= 1.05 * entry["liveness_bound"]
