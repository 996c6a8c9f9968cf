# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled modules in the programs of practitioners: text generation, pipelines that hand a dict
from module to module, training loops."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import weft
from weft.errors import WeftWarning

Batch = dict[str, torch.Tensor]


# Text generation.


@pytest.fixture(scope="module")
def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
        pad_token_id=0, bos_token_id=1, eos_token_id=63,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


PROMPT = torch.tensor([[1, 5, 9, 3]])
LENGTH = {"max_new_tokens": 3, "do_sample": False, "attention_mask": torch.ones_like(PROMPT)}


def test_generate_says_why_it_runs_eagerly(llama, verified, no_grad):
    expected = llama.generate(PROMPT, **LENGTH)
    compiled = weft.compile(llama)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = compiled.generate(PROMPT, **LENGTH)
    assert torch.equal(result, expected)
    assert isinstance(compiled, type(llama)) and compiled.config is llama.config
    stats = compiled.stats()
    assert stats["breaks"] or stats["graphs"]
    ours = [each for each in caught if each.category is WeftWarning]
    assert [each.filename for each in ours] == [__file__] * bool(stats["breaks"])


@pytest.mark.at_length
@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
@pytest.mark.parametrize("way", ["forward", "inplace"])
def test_generate_in_other_ways(llama, way, no_grad):
    expected = llama.generate(PROMPT, **LENGTH)
    model = copy.deepcopy(llama)
    if way == "forward":
        model.forward = weft.compile(model.forward)
    else:
        weft.compile(model, inplace=True)
    assert torch.equal(model.generate(PROMPT, **LENGTH), expected)
    face = model.forward if way == "forward" else model
    assert weft.stats(face)["misses"]


def test_logits_and_files_of_a_transformers_model(llama, tmp_path, no_grad, compiled_only):
    compiled = weft.compile(llama)
    for _ in range(2):
        logits = compiled(PROMPT, use_cache=False).logits
        torch.testing.assert_close(logits, llama(PROMPT, use_cache=False).logits)
    assert compiled.stats()["hits"] == 2
    compiled.save_pretrained(tmp_path)
    for kind in (compiled.__class__, type(compiled)):
        loaded = kind.from_pretrained(tmp_path).eval()
        assert type(loaded) is type(llama) and loaded.config.architectures == ["LlamaForCausalLM"]
        torch.testing.assert_close(loaded(PROMPT, use_cache=False).logits, logits)


# Modules that pass a dict of features on, as those of sentence-transformers do.


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, features: Batch, **options: Any) -> Batch:
        ids, mask = features["input_ids"], features["attention_mask"]
        hidden = self.layer(self.table(ids), src_key_padding_mask=mask == 0)
        features["token_embeddings"] = hidden
        return features


class Pooling(nn.Module):
    def forward(self, features: Batch) -> Batch:
        mask = features["attention_mask"].unsqueeze(-1).float()
        total = (features["token_embeddings"] * mask).sum(1)
        features.update(sentence_embedding=total / mask.sum(1).clamp(min=1e-9))
        return features


class Normalize(nn.Module):
    def forward(self, features: Batch) -> Batch:
        embedding = features["sentence_embedding"]
        return {**features, "sentence_embedding": nn.functional.normalize(embedding, dim=-1)}


class Encoder(nn.Sequential):
    """With a tokenizer of its own: a letter is a token."""

    def tokenize(self, texts: list[str]) -> Batch:
        longest = max(map(len, texts))
        ids = [[ord(letter) % 15 + 1 for letter in text] for text in texts]
        rows = [row + [0] * (longest - len(row)) for row in ids]
        return {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(rows).clamp(max=1)}

    def forward(self, features: Batch) -> Batch:
        for module in self:
            features = module(features)
        return features

    @torch.inference_mode()
    def encode(self, texts: list[str], batch_size: int = 2) -> torch.Tensor:
        self.eval()
        batches = (texts[i : i + batch_size] for i in range(0, len(texts), batch_size))
        return torch.cat([self(self.tokenize(each))["sentence_embedding"] for each in batches])


TEXTS = ["one", "three", "seven", "six"]


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::weft.errors.WeftWarning")
@pytest.mark.parametrize("which", ["whole", "children", "forward", "inplace"])
def test_sentence_encoder(which, verified):
    encoder = Encoder(Tokens(), Pooling(), Normalize())
    encoder.eval()
    expected = encoder.encode(TEXTS)
    plain, compiled = copy.deepcopy(encoder), encoder
    if which == "whole":
        compiled = weft.compile(encoder)
    elif which == "forward":
        encoder.forward = weft.compile(encoder.forward)
    elif which == "inplace":
        weft.compile(encoder, inplace=True)
    else:
        for number in range(3):
            encoder[number] = weft.compile(encoder[number])
    for _ in range(2):
        torch.testing.assert_close(compiled.encode(TEXTS), expected)
    # What the modules put into the user's dict is found there.
    ours, theirs = encoder.tokenize(["a", "bc"]), encoder.tokenize(["a", "bc"])
    results = compiled(ours), plain(theirs)
    for mine, wanted in ((ours, theirs), results):
        assert list(mine) == list(wanted)
        for name in mine:
            torch.testing.assert_close(mine[name], wanted[name])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("training", [False, True])
def test_transformer_encoder(training, no_grad, verified):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).train(training)
    compiled = weft.compile(model)
    x = torch.randn(2, 5, 8)
    padding = torch.tensor([[False] * 4 + [True], [False] * 5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, about nested tensors
        for _ in range(3):
            torch.testing.assert_close(compiled(x), model(x))
            expected = model(x, src_key_padding_mask=padding)
            torch.testing.assert_close(compiled(x, src_key_padding_mask=padding), expected)
    assert compiled.stats()["hits"] >= 2


# A training loop in the manner of Lightning: the module says what is done, the trainer when.


class LitModule(nn.Module):
    trainer: Trainer

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.events: list[str] = []
        self.losses: list[float] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)

    def training_step(self, batch: tuple[torch.Tensor, ...], number: int) -> torch.Tensor:
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: tuple[torch.Tensor, ...], number: int) -> torch.Tensor:
        return nn.functional.mse_loss(self(batch[0]), batch[1])

    def configure_optimizers(self) -> tuple[list[Any], list[Any]]:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]

    def log(self, name: str, value: torch.Tensor) -> None:
        self.losses.append(float(value.detach()))

    def on_train_epoch_start(self) -> None:
        self.events.append(f"epoch {self.trainer.epoch}")

    def on_validation_end(self) -> None:
        self.events.append("validated")


class Trainer:
    def __init__(self, epochs: int) -> None:
        self.epochs, self.epoch = epochs, 0
        self.validation: list[float] = []

    def fit(self, module: LitModule, batches: list[tuple[torch.Tensor, ...]]) -> None:
        module.trainer = self
        (optimizer,), (scheduler,) = module.configure_optimizers()
        for epoch in range(self.epochs):
            self.epoch = epoch
            module.train()
            module.on_train_epoch_start()
            for number, batch in enumerate(batches):
                optimizer.zero_grad()
                module.training_step(batch, number).backward()
                nn.utils.clip_grad_norm_(module.parameters(), 1.0)
                optimizer.step()
            scheduler.step()
            self.validate(module, batches)

    @torch.no_grad()
    def validate(self, module: LitModule, batches: list[tuple[torch.Tensor, ...]]) -> None:
        module.eval()
        losses = [module.validation_step(batch, i) for i, batch in enumerate(batches)]
        self.validation.append(float(torch.stack(losses).mean()))
        module.on_validation_end()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("inplace", [False, True])
def test_training_loop(inplace, verified):
    """It trains as without Weft, by compiled programs, and so does validation."""
    x = torch.randn(3, 6, 4)
    batches = [(each, each.sum(1, keepdim=True)) for each in x]
    outcomes = []
    for compiling in (False, True):
        torch.manual_seed(1)
        module, trainer = LitModule(), Trainer(epochs=3)
        if compiling:
            module = weft.compile(module, inplace=inplace)
        trainer.fit(module, batches)
        outcomes.append((module, trainer))
    (plain, eager), (compiled, ours) = outcomes
    assert compiled.losses == pytest.approx(plain.losses, rel=1e-5)
    assert ours.validation[-1] < ours.validation[0]
    assert compiled.events == plain.events and compiled.trainer is ours
    assert ours.validation == pytest.approx(eager.validation, rel=1e-5)
    for mine, other in zip(compiled.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)
    stats = weft.stats(compiled)
    assert stats["breaks"] == []
    assert stats["graphs"] and stats["hits"] >= 3
