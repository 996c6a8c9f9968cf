# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.nn's encoder layers, which eager execution runs by kernels of their own wherever it can.
Tracing takes the other way, whose results differ where sequences are padded: calls for which eager
execution takes that, too, are marked. For a process that traces and ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch.fx.traceback import annotate, preserve_node_meta

from weft.frontend.ops.attention import PLAIN_ENCODER

_Layer = torch.nn.TransformerEncoderLayer


@contextlib.contextmanager
def encoder_layers_marked() -> Iterator[None]:
    attend = _Layer._sa_block

    def marked(self: torch.nn.TransformerEncoderLayer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if not _is_plain(self):
            return attend(self, *args, **kwargs)
        with preserve_node_meta(), annotate({PLAIN_ENCODER: True}):
            return attend(self, *args, **kwargs)

    with mock.patch.object(_Layer, "_sa_block", marked):
        yield


def _is_plain(layer: torch.nn.TransformerEncoderLayer) -> bool:
    """Whether eager execution runs it op by op: some of the reasons that `forward` has for that,
    which hold for `torch.nn.TransformerEncoder` as well."""
    records = torch.is_grad_enabled() and any(each.requires_grad for each in layer.parameters())
    attention = layer.self_attn
    return (
        layer.training
        or records
        or not attention.batch_first
        or attention.in_proj_bias is None
        or attention.num_heads % 2 == 1
    )
