# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scaled dot-product attention, whole."""

from __future__ import annotations

import math
import sys

import torch

from weft.frontend.graph import Value
from weft.frontend.lowered import Decline, Unsupported
from weft.frontend.ops.dropout import dropped_out, may_draw
from weft.frontend.table import Site, lowers

# In the metadata of what an encoder layer of torch.nn's calls that eager execution runs op by op.
PLAIN_ENCODER = "weft.plain_encoder"


@lowers("scaled_dot_product_attention.default")
def attention(
    site: Site,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    b = site.builder
    if mask is not None:
        _refuse_padded_encoder(site, mask)
    if dropout_p and not may_draw(b):
        raise Decline("random")
    if mask is not None and is_causal:
        raise Decline("attention with a mask and is_causal")
    scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    # At least one dim of heads in front.
    batch = site.shape[:-2] or (1,)
    q = _with_batch(site, q, batch)
    k, v = (_heads(site, x, batch, enable_gqa) for x in (k, v))
    if mask is not None:
        if mask.dtype != torch.bool:
            mask = b.convert(mask, q.dtype)
        mask = b.broadcast(mask, [*batch, q.shape[-2], k.shape[-2]])
    if dropout_p:
        return b.reshape(_dropped_out(site, q, k, v, mask, is_causal, scale, dropout_p), site.shape)
    return b.reshape(b.attention(q, k, v, mask, is_causal, scale), site.shape)


def _dropped_out(site: Site, q, k, v, mask, is_causal: bool, scale: float, p: float) -> Value:
    """Attention with dropout of its weights, as `_scaled_dot_product_attention_math` computes it,
    which PyTorch takes for dropout."""
    b, rank = site.builder, q.rank
    batch, rows, last = list(range(rank - 2)), rank - 2, rank - 1
    root = math.sqrt(abs(scale))
    q, k = b.scalar("mul", q, math.copysign(root, scale)), b.scalar("mul", k, root)
    scores = b.dot(q, k, ((last,), (last,)), (batch, batch))
    if is_causal:
        places = [b.iota(torch.int64, scores.shape, dim) for dim in (last, rows)]
        mask = b.compare("le", *places)
    if mask is not None and mask.dtype == torch.bool:
        hidden = b.constant(-math.inf, scores.dtype, scores.shape)
        scores = b.select(mask, scores, hidden)
    elif mask is not None:
        scores = b.binary("add", scores, mask)
    weights, _ = dropped_out(site, b.softmax(scores, last), p)
    return b.dot(weights, v, ((last,), (rows,)), (batch, batch))


def _refuse_padded_encoder(site: Site, mask: Value) -> None:
    """torch.nn's encoder runs sequences with padding by kernels of its own: results of padded
    positions are zero, those of a sequence that is all padding no numbers. What is captured is the
    way around these kernels, which tracing takes."""
    if PLAIN_ENCODER in site.node.meta.get("custom", ()):
        return
    stack = site.node.meta.get("nn_module_stack", {}).values()
    is_encoder = any(_is_encoder_layer(kind) for _, kind in stack)
    # A mask of sequences is the same for all of them and for all heads.
    if is_encoder and (mask.shape[-4:-2] != (1, 1) or mask.shape[-2] == 1):
        raise Unsupported(
            "a torch.nn.TransformerEncoderLayer with padding", site.builder.graph.location
        )


def _is_encoder_layer(kind: type | str) -> bool:
    """kind: a module's class, or where it is found."""
    if isinstance(kind, str):
        module, _, name = kind.rpartition(".")
        kind = getattr(sys.modules.get(module), name, object)
    return isinstance(kind, type) and issubclass(kind, torch.nn.TransformerEncoderLayer)


def _with_batch(site: Site, x: Value, batch: tuple[int, ...]) -> Value:
    return site.builder.broadcast(x, [*batch, *x.shape[-2:]])


def _heads(site: Site, x: Value, batch: tuple[int, ...], grouped: bool) -> Value:
    """Keys or values with as many heads as there are of queries."""
    heads = x.shape[-3] if x.rank > 2 else 1
    if not grouped or heads == batch[-1]:
        return _with_batch(site, x, batch)
    b, matrix = site.builder, x.shape[-2:]
    x = b.broadcast(x, [*batch[:-1], heads, *matrix])
    n = len(batch)
    wide = [*batch[:-1], heads, batch[-1] // heads, *matrix]
    x = b.broadcast_in_dim(x, [*range(n), n + 1, n + 2], wide)
    return b.reshape(x, [*batch, *matrix])
