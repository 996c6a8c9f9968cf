# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools over all of a dim, as `F.max_pool1d(x, x.shape[-1])` writes them: a window is a number to
PyTorch, and one that is a symbolic size would become one. An adaptive pool with one result computes
the same, and the same gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx.experimental.symbolic_shapes import statically_known_true

_MAX = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
_MEAN = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
_PLAIN = {"padding": 0, "dilation": 1, "divisor_override": None, "return_indices": False}


def _one_mean(x: torch.Tensor) -> torch.Tensor:
    return x.mean(-1, keepdim=True)


def _one_maximum(x: torch.Tensor) -> torch.Tensor:
    return F.adaptive_max_pool2d(x.unsqueeze(-2), 1).squeeze(-2)


def _one_of_image(x: torch.Tensor) -> torch.Tensor:
    return F.adaptive_max_pool2d(x, 1)


# The parameters behind the tensor, over how many dims, and what is called instead.
_POOLS: dict[Callable, tuple[tuple[str, ...], int, Callable[[torch.Tensor], torch.Tensor]]] = {
    **dict.fromkeys((torch.max_pool1d, F.max_pool1d), (_MAX, 1, _one_maximum)),
    **dict.fromkeys((torch.max_pool2d, F.max_pool2d), (_MAX, 2, _one_of_image)),
    torch.avg_pool1d: (_MEAN, 1, _one_mean),
    torch._C._nn.avg_pool2d: (_MEAN, 2, lambda x: F.adaptive_avg_pool2d(x, 1)),
}


def _whole(pool: tuple[tuple[str, ...], int, Callable[[torch.Tensor], torch.Tensor]]) -> Callable:
    names, dims, instead = pool

    def form(args: tuple, kwargs: dict[str, Any]) -> Any:
        return instead(args[0]) if _is_over_all(args, kwargs, names, dims) else NotImplemented

    return form


FORMS = {function: _whole(pool) for function, pool in _POOLS.items()}


def _is_over_all(args: tuple, kwargs: dict[str, Any], names: tuple[str, ...], dims: int) -> bool:
    given = {**dict(zip(names, args[1:])), **kwargs}
    window = given.get("kernel_size")
    sizes = [*window] if isinstance(window, (tuple, list)) else [window] * dims
    if not args or not any(isinstance(each, torch.SymInt) for each in sizes):
        return False
    if len(sizes) != dims or args[0].dim() not in (dims + 1, dims + 2):
        return False  # PyTorch raises an error
    if any(each != plain for name, plain in _PLAIN.items() for each in _each(given, name, plain)):
        return False
    if any(each is not None and each < 1 for each in _each(given, "stride", None)):
        return False
    own = args[0].shape[-dims:]
    return all(statically_known_true(one == other) for one, other in zip(sizes, own))


def _each(given: dict[str, Any], name: str, default: Any) -> Sequence[Any]:
    value = given.get(name, default)
    return value if isinstance(value, (tuple, list)) else (value,)
