# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many floating-point operations a call takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count
from torch.utils.module_tracker import ModuleTracker


def count(call: Callable[[], Any]) -> int:
    """In products of matrices, convolutions and attention, as PyTorch runs them.

    PyTorch's own counter leaves out the attention that it has for CPUs. Of causal attention half
    counts: a product with what the mask hides is none that anyone needs.
    """
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    counter = FlopCounterMode(display=False, custom_mapping={attention: _attention})
    counter.mod_tracker = _NoModules()
    with counter:
        call()
    return counter.get_total_flops()


class _NoModules(ModuleTracker):
    """Its base puts hooks on what modules are given, which fails under inference_mode for views of
    parameters: they require gradients and have no function for them."""

    def __enter__(self) -> _NoModules:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _attention(query, key, value, dropout: float = 0.0, causal: bool = False, **_) -> int:
    """The tensors by their shapes (batch, heads, length, width)."""
    return sdpa_flop_count(query, key, value) // (2 if causal else 1)
