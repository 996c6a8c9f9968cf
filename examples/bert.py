# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BERT-base with random weights, from its configuration in transformers."""

from __future__ import annotations

import torch
from torch import nn
from transformers import BertConfig, BertModel


def bert_base() -> nn.Module:
    return BertModel(BertConfig()).eval()


def token_ids(batch: int, length: int, vocabulary: int = 30_522) -> torch.Tensor:
    return torch.randint(vocabulary, (batch, length))
