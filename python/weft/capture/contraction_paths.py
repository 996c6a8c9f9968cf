# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.einsum` and `torch.linalg.multi_dot` of several operands. In which order they are
contracted is decided by their sizes, which would become numbers. The order is that of the sizes at
hand: others round otherwise, and give the same."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import torch
from torch.backends import opt_einsum


def _contracted(args: tuple, kwargs: dict[str, Any]) -> Any:
    if kwargs or not args or type(args[0]) is not str:
        return NotImplemented
    equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = [*operands[0]]
    if len(operands) < 3 or not all(isinstance(each, torch.Tensor) for each in operands):
        return NotImplemented
    if not any(map(_has_symbols, operands)):
        return NotImplemented
    return torch._VF.einsum(equation, operands, path=_path(equation, operands))


def _multiplied(args: tuple, kwargs: dict[str, Any]) -> Any:
    """Of matrices alone: at the ends PyTorch takes vectors as well."""
    matrices = args[0] if len(args) == 1 and not kwargs else ()
    if len(matrices) < 3 or not any(map(_has_symbols, matrices)):
        return NotImplemented
    if any(each.dim() != 2 for each in matrices):
        return NotImplemented
    sizes = [_plain(matrices[0].shape[0]), *(_plain(each.shape[1]) for each in matrices)]

    def cheapest(first: int, last: int) -> tuple[int, Any]:
        if first == last:
            return 0, first
        found = []
        for cut in range(first, last):
            (one, left), (other, right) = cheapest(first, cut), cheapest(cut + 1, last)
            cost = one + other + sizes[first] * sizes[cut + 1] * sizes[last + 1]
            found.append((cost, (left, right)))
        return min(found, key=lambda each: each[0])

    def product(order: Any) -> torch.Tensor:
        return matrices[order] if type(order) is int else product(order[0]) @ product(order[1])

    return product(cheapest(0, len(matrices) - 1)[1])


def _has_symbols(tensor: torch.Tensor) -> bool:
    sizes = (size for size in tensor.shape if isinstance(size, torch.SymInt))
    return any(size.node.hint is not None for size in sizes)


def _plain(size: Any) -> int:
    return size.node.hint if isinstance(size, torch.SymInt) else size


def _path(equation: str, operands: list[torch.Tensor]) -> list[int] | None:
    """As torch.functional.einsum makes it, of plain sizes."""
    if not opt_einsum.enabled or not opt_einsum.is_available():
        return None
    shapes = [tuple(map(_plain, each.shape)) for each in operands]
    module = opt_einsum.get_opt_einsum()
    with decimal.localcontext():  # of whose flags it leaves some set
        found = module.contract_path(equation, *shapes, shapes=True, optimize=opt_einsum.strategy)
    return [number for pair in found[0] for number in pair]


FORMS: dict[Callable, Callable[[tuple, dict[str, Any]], Any]] = {
    torch.einsum: _contracted,
    torch.linalg.multi_dot: _multiplied,
}
