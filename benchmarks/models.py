# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models that can be measured, by name: those of the examples and more.

To add one, add a function that returns a `Case` to `MODELS`. Libraries are imported where
they are used, so that a worker process loads those of its own model alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from examples import models
from torch import nn

from benchmarks import networks
from weft.benchmark.case import Case


def gpt2(length: int = 128) -> Case:
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(GPT2Config(use_cache=False)).eval()
    return Case(f"GPT-2, {length} tokens", model, (_ids(model, length),))


def distilbert(length: int = 128) -> Case:
    from transformers import DistilBertConfig, DistilBertModel

    model = DistilBertModel(DistilBertConfig()).eval()
    return Case(f"DistilBERT, {length} tokens", model, (_ids(model, length),))


def t5_encoder(length: int = 128) -> Case:
    from transformers import T5Config, T5EncoderModel

    model = T5EncoderModel(T5Config()).eval()  # its defaults are those of T5-small
    return Case(f"T5-small encoder, {length} tokens", model, (_ids(model, length),))


def whisper_encoder() -> Case:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536
    )
    return Case(
        "Whisper-tiny encoder, 30 s", WhisperEncoder(config).eval(), (torch.randn(1, 80, 3000),)
    )


def vit() -> Case:
    from transformers import ViTConfig, ViTModel

    return _on_image("ViT-base", ViTModel(ViTConfig()))


def resnet50() -> Case:
    from transformers import ResNetConfig, ResNetForImageClassification

    return _on_image("ResNet-50", ResNetForImageClassification(ResNetConfig(num_labels=1000)))


def convnext() -> Case:
    from transformers import ConvNextConfig, ConvNextModel

    return _on_image("ConvNeXt-tiny", ConvNextModel(ConvNextConfig()))


def mobilenet() -> Case:
    from transformers import MobileNetV2Config, MobileNetV2Model

    return _on_image("MobileNetV2", MobileNetV2Model(MobileNetV2Config()))


class LlamaStep(nn.Module):
    """One decoding step: token (1, 1) after the keys and values of `past` tokens, one pair of
    tensors (1, heads, past, head width) for each layer, to the last hidden state (1, 1, width)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: torch.Tensor, *past: torch.Tensor) -> torch.Tensor:
        from transformers import DynamicCache

        cache = DynamicCache(zip(past[::2], past[1::2], strict=True))
        return self.model(token, past_key_values=cache, use_cache=True).last_hidden_state


def llama(past: int = 0, length: int = 128) -> Case:
    """A decoder of 8 layers, 8 query heads on 2 of keys and values; past: tokens in the cache."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=8192,
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=2,
        use_cache=False,
    )
    model = LlamaModel(config).eval()
    if not past:
        return Case(f"Llama-style, prefill {length}", model, (_ids(model, length),))
    cache = [torch.randn(1, 2, past, 64) for _ in range(2 * config.num_hidden_layers)]
    return Case(
        f"Llama-style, step after {past}", LlamaStep(model).eval(), (_ids(model, 1), *cache)
    )


def dlrm(batch: int = 128) -> Case:
    ids = torch.randint(10_000, (batch, 26))
    return Case(f"DLRM-like, batch {batch}", networks.Dlrm().eval(), (torch.randn(batch, 13), ids))


def unet(size: int = 128) -> Case:
    return Case(f"U-Net, {size}x{size}", networks.UNet().eval(), (torch.randn(1, 3, size, size),))


def gru_cells(steps: int = 16, width: int = 256) -> Case:
    cells = networks.GruCells(width).eval()
    return Case(f"GRU cell, {steps} steps", cells, (torch.randn(steps, 1, width),))


def _ids(model: nn.Module, length: int) -> torch.Tensor:
    return torch.randint(model.config.vocab_size, (1, length))


def _on_image(title: str, model: nn.Module) -> Case:
    return Case(f"{title}, batch 1", model.eval(), (torch.randn(1, 3, 224, 224),))


MODELS: dict[str, Callable[[], Case]] = {
    "bert": models.MODELS["bert"],
    "bert-b8": models.MODELS["bert-b8"],
    "minilm": models.MODELS["minilm"],
    "minilm-s16": partial(models.minilm, 16),
    "distilbert": distilbert,
    "gpt2": gpt2,
    "gpt2-s1024": partial(gpt2, 1024),
    "t5-encoder": t5_encoder,
    "llama": llama,
    "llama-step": partial(llama, past=128),
    "whisper-encoder": whisper_encoder,
    "vit": vit,
    "mixer": lambda: _on_image("MLP-Mixer S/16", networks.Mixer()),
    "resnet50": resnet50,
    "convnext": convnext,
    "mobilenet": mobilenet,
    "unet": unet,
    "dlrm": dlrm,
    "gru-cells": gru_cells,
    "mlp-b1": partial(models.mlp, 1),
    "mlp-b64": partial(models.mlp, 64),
    "conv-b1": partial(models.conv_net, 1),
    "conv-b64": partial(models.conv_net, 64),
}
