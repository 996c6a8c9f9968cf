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

    forward = torch.nn.MultiheadAttention.forward

    def as_fast(
        self: torch.nn.MultiheadAttention,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        output, weights = forward(self, query, key, value, *args, **kwargs)
        is_fast = query is key is value and query.dim() == 3 and not _is_by_op(self)
        return output.contiguous() if is_fast else output, weights

    with (
        mock.patch.object(_Layer, "_sa_block", marked),
        mock.patch.object(torch.nn.MultiheadAttention, "forward", as_fast),
    ):
        yield


def _is_by_op(attention: torch.nn.MultiheadAttention) -> bool:
    """Whether eager execution takes no kernel for all of an attention, whose result has the batch
    outermost in memory."""
    parameters = (attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight)
    records = torch.is_grad_enabled() and any(
        each.requires_grad for each in parameters if each is not None
    )
    return (
        attention.training
        or records
        or not (attention.batch_first and attention._qkv_same_embed_dim)
        or attention.in_proj_bias is None
        or attention.bias_k is not None
        or attention.add_zero_attn
        or attention.num_heads % 2 == 1
        or not torch.backends.mha.get_fastpath_enabled()
        or torch.is_autocast_enabled()
    )


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
