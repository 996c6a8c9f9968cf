# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models of transformers, tiny, without a single fallback."""

import pytest
import torch
from frontend_cases import check
from torch import nn

transformers = pytest.importorskip("transformers")
T = transformers

VOCABULARY = {"vocab_size": 90, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
}


def ids() -> dict:
    return {"input_ids": torch.randint(3, 90, (2, 7))}


def masked() -> dict:
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 4:] = 0
    return {**ids(), "attention_mask": mask}


def image() -> dict:
    return {"pixel_values": torch.randn(2, 3, 32, 32)}


MODELS = {
    "bert": lambda: (T.BertModel(T.BertConfig(**SMALL, **VOCABULARY)), masked()),
    "minilm": lambda: (
        T.BertModel(T.BertConfig(**SMALL, **VOCABULARY), add_pooling_layer=False),
        {**masked(), "token_type_ids": torch.zeros(2, 7, dtype=torch.int64)},
    ),
    "bert-classifier": lambda: (
        T.BertForSequenceClassification(T.BertConfig(**SMALL, **VOCABULARY)),
        {**masked(), "labels": torch.tensor([0, 1])},
    ),
    "distilbert": lambda: (
        T.DistilBertModel(
            T.DistilBertConfig(dim=16, n_layers=2, n_heads=2, hidden_dim=32, **VOCABULARY)
        ),
        masked(),
    ),
    "gpt2": lambda: (
        T.GPT2LMHeadModel(T.GPT2Config(n_embd=16, n_layer=2, n_head=2, **VOCABULARY)),
        {**ids(), "use_cache": False},
    ),
    "gpt2-masked": lambda: (
        T.GPT2LMHeadModel(T.GPT2Config(n_embd=16, n_layer=2, n_head=2, **VOCABULARY)),
        {**masked(), "use_cache": False},
    ),
    "llama": lambda: (
        T.LlamaForCausalLM(T.LlamaConfig(num_key_value_heads=2, **SMALL, **VOCABULARY)),
        {**ids(), "use_cache": False},
    ),
    "llama-masked": lambda: (
        T.LlamaForCausalLM(T.LlamaConfig(num_key_value_heads=2, **SMALL, **VOCABULARY)),
        {**masked(), "use_cache": False},
    ),
    "t5-encoder": lambda: (
        T.T5EncoderModel(
            T.T5Config(d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, **VOCABULARY)
        ),
        masked(),
    ),
    "whisper-encoder": lambda: (
        T.WhisperModel(
            T.WhisperConfig(
                d_model=16,
                encoder_layers=2,
                decoder_layers=1,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=32,
                decoder_ffn_dim=32,
                max_source_positions=20,
                num_mel_bins=8,
                decoder_start_token_id=1,
                **VOCABULARY,
            )
        ).encoder,
        {"input_features": torch.randn(1, 8, 40)},
    ),
    "vit": lambda: (
        T.ViTForImageClassification(T.ViTConfig(image_size=32, patch_size=8, **SMALL)),
        image(),
    ),
    "convnext": lambda: (
        T.ConvNextForImageClassification(
            T.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 2], num_stages=2)
        ),
        image(),
    ),
    "mobilenet-v2": lambda: (
        T.MobileNetV2ForImageClassification(
            T.MobileNetV2Config(image_size=32, depth_multiplier=0.25, min_depth=4)
        ),
        image(),
    ),
    "resnet": lambda: (
        T.ResNetForImageClassification(
            T.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2])
        ),
        image(),
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MODELS)
def test_model(name, dtype):
    model, inputs = MODELS[name]()
    inputs = {
        key: value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value
        for key, value in inputs.items()
    }
    lowered = check(model.eval().to(dtype), **inputs)
    assert b"torch_fallback" not in lowered.graph


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True))
        self.middle = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(True)
        )
        self.up = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        skip = self.down(x)
        y = self.middle(nn.functional.max_pool2d(skip, 2))
        y = nn.functional.interpolate(y, scale_factor=2, mode="bilinear")
        return self.up(torch.cat([skip, y], 1))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(5 + 6, 24)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[1], 6)
        outputs = []
        for t in range(x.shape[0]):
            i, f, g, o = self.cell(torch.cat([x[t], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            outputs.append(h)
        return torch.stack(outputs), (h, c)


@pytest.mark.parametrize("training", [True, False])
def test_u_net(training):
    check(UNet().train(training), torch.randn(1, 3, 8, 8))


def test_recurrent_cells():
    check(LSTM(), torch.randn(4, 2, 5))
    check(nn.LSTMCell(5, 6), torch.randn(2, 5))
    check(nn.GRUCell(5, 6), torch.randn(2, 5))
    check(nn.GRU(5, 6), torch.randn(3, 2, 5))
    check(nn.LSTM(5, 6, 2, bidirectional=True), torch.randn(2, 3, 5))


def test_train_mode_bert_draws_what_eager_draws():
    model = T.BertModel(T.BertConfig(**SMALL, **VOCABULARY)).train()
    lowered = check(model, native=False, **masked())
    targets = {fallback.target for fallback in lowered.fallbacks}
    assert targets == {"aten.dropout.default", "aten.scaled_dot_product_attention.default"}
