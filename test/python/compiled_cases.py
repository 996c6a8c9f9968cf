# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares compiled programs with eager PyTorch and with a float64 twin of the same call.

Many functions of the same arguments are compiled as one program: capturing costs far more than
compiling, and kernels that share inputs have to be tested too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from counting import latest
from torch.utils import _pytree as pytree

import weft

# A result may differ from the float64 twin by this number of the type's eps, even if eager's own
# error would allow less.
SLACK = 4


def check(
    functions: Callable | Sequence[Callable],
    *args: Any,
    native: bool = True,
    pointwise: bool = False,
    double_is_exact: bool = True,
    same_strides: bool = True,
    slack: float = SLACK,
    **kwargs: Any,
) -> Any:
    """Compares `functions` of `args`, compiled as one program, with eager, including dtypes and
    effects.

    Floats may be twice as far from the float64 twin as eager's; float64 has to agree to 1e-12,
    unless the program itself rounds to float32 (`double_is_exact` is False).

    native: whether nothing may be left to PyTorch. pointwise: whether errors are relative to each
    element, instead of the largest one. same_strides: whether strides must be eager's. slack: in
    place of SLACK. Returns the compiled callable.
    """
    module = functions if isinstance(functions, torch.nn.Module) else Together(functions)
    eager, eager_args = copy.deepcopy(module), copy.deepcopy((args, kwargs))
    twin, twin_args = copy.deepcopy(module).double(), in_double((args, kwargs))
    with torch.no_grad():
        expected = eager(*eager_args[0], **eager_args[1])
        compiled = weft.compile(module)
        found = compiled(*args, **kwargs)
        if native:
            assert not compiled.eager_reasons, compiled.eager_reasons
            fallbacks = latest(compiled).lowered.fallbacks
            assert not fallbacks, fallbacks
        exact = pytree.tree_leaves(twin(*twin_args[0], **twin_args[1]))
    if same_strides:
        for got, want in zip(*map(pytree.tree_leaves, (found, expected)), strict=True):
            assert strides(got) == strides(want), (got.shape, got.stride(), want.stride())
    compare(found, expected, exact, pointwise, double_is_exact, slack)
    compare((args, kwargs), eager_args, None, False, double_is_exact)
    compare(list(module.buffers()), list(eager.buffers()), None, False, double_is_exact)
    return compiled


class Together(torch.nn.Module):
    """Several functions of the same arguments as one module."""

    def __init__(self, functions: Callable | Sequence[Callable]) -> None:
        super().__init__()
        self.functions = [functions] if callable(functions) else list(functions)

    def forward(self, *args: Any, **kwargs: Any) -> list:
        return [function(*args, **kwargs) for function in self.functions]

    def __deepcopy__(self, memo: dict) -> Together:
        return Together(self.functions)


def in_double(tree: Any) -> Any:
    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.double() if leaf.is_floating_point() else leaf.clone()

    return pytree.tree_map(convert, tree)


def compare(found, expected, exact, pointwise, double_is_exact, slack=SLACK) -> None:
    found, expected = pytree.tree_leaves(found), pytree.tree_leaves(expected)
    assert len(found) == len(expected)
    for number, (got, want) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(want, torch.Tensor):
            assert got == want or got is want, number
            continue
        assert (got.dtype, got.shape) == (want.dtype, want.shape), number
        twin = None if exact is None else exact[number]
        problem = difference(got, want, twin, pointwise, double_is_exact, slack)
        assert problem is None, f"output {number}, {list(want.shape)}: {problem}"


def strides(tensor: torch.Tensor) -> list[int]:
    """The strides of dimensions with more than one element."""
    if tensor.numel() == 0:
        return []
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def difference(got, want, twin, pointwise, double_is_exact, slack=SLACK) -> str | None:
    """What is wrong with `got`, or None."""
    if not want.dtype.is_floating_point:
        wrong = (got != want).sum().item()
        return f"{wrong} elements differ" if wrong else None
    if want.numel() == 0:
        return None
    kind = torch.finfo(want.dtype)
    got, want = got.double(), want.double()
    twin = want if twin is None else twin.double()

    # Eager's vector code may give NaN where the limit exists, and f32 overflows earlier.
    unbounded = ~(twin.isfinite() & want.isfinite())
    agrees = same(got, want) | same(got, twin)
    if not agrees[unbounded].all():
        return f"found {got[unbounded & ~agrees]}, expected {want[unbounded & ~agrees]}"

    error = (got - twin).abs()[~unbounded]
    eager, scale = (want - twin).abs()[~unbounded], twin.abs()[~unbounded]
    if error.numel() == 0:
        return None
    if not pointwise:
        eager, scale = eager.max(), scale.max()
    limit = 2 * eager + slack * kind.eps * scale + kind.tiny
    if kind.eps < 1e-10:
        limit = 2 * eager + (1e-12 if double_is_exact else 1e-5) * scale + kind.tiny
    if (error <= limit).all():
        return None
    worst = (error - limit).argmax()
    return f"error {error[worst]:.2e}, eager's {eager.max():.2e}, values up to {scale.max():.2e}"


def same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | (a.isnan() & b.isnan())
