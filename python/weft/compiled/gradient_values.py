# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a program's gradients are those of eager execution, but for rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from weft.compiled.verification import TOLERANCES, Differs, as_exact, example_of, is_near

# How much further apart gradients may be where float64 cannot tell, as numbers are drawn anew.
_WHERE_RANDOM = 10
# What of a gradient that ought to be zero nobody takes for a number, along cotangents of size one.
_NOISE = 5e-6
# How many last bits of what gradients are computed from two computations may disagree by.
_LAST_BITS = 16

Gradients = Sequence[torch.Tensor | None]


def compare_values(
    eager: Gradients,
    own: Sequence[torch.Tensor],
    exact: Callable[[], Gradients | None],
    given: Sequence[torch.Tensor],
    coarsest: float = 0.0,
) -> None:
    """exact: gives them in float64, None where that cannot be known. given: the cotangents.
    coarsest: the tolerance of the coarsest type that anything is rounded to on the way.

    Raises: Differs.
    """
    far = [
        place for place, (x, y) in enumerate(zip(eager, own, strict=True)) if _is_far(x, y, place)
    ]
    references = exact() if far else None
    magnitude = _magnitude(eager, given)
    for place in far:
        x, y = eager[place], own[place]
        reference = None if references is None else references[place]
        # Of a half's few bits noise is the usual.
        if reference is not None and not coarsest and _is_noise(x, reference):
            raise Differs(f"{_name(place)} is rounding noise alone in eager execution")
        if not _excused(x, y, reference, magnitude, coarsest):
            raise Differs(f"{_name(place)} differs: {example_of(x, y)}")


def _excused(
    eager: torch.Tensor,
    own: torch.Tensor,
    exact: torch.Tensor | None,
    magnitude: float,
    coarsest: float,
) -> bool:
    """Whether rounding alone may have taken the two apart. exact: in float64, None where that
    cannot be known. magnitude: of what was computed with, whose last bits are left where it
    cancels."""
    last_bits = _LAST_BITS * torch.finfo(eager.dtype).eps * magnitude
    if _within(eager, own, last_bits):
        return True
    tolerance = max(TOLERANCES.get(eager.dtype, 0.0), coarsest)
    if exact is None or eager.dtype == torch.float64:  # which is no better than itself
        return is_near(eager, own, _WHERE_RANDOM * tolerance)
    if as_exact(eager, own, exact, tolerance):
        return True
    return _within(eager, exact, last_bits) and _within(own, exact, last_bits)


def _is_noise(eager: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether eager execution's gradient is what its rounding left of a sum that cancels, as of a
    bias ahead of a batch norm: then nobody can say whether another one is right."""
    if eager.dtype != torch.float32:  # of a half's few bits that is the usual
        return False
    error = (eager.double() - exact).abs().max().item()
    return error > _NOISE and error > exact.abs().max().item() / 100


def _within(x: torch.Tensor, y: torch.Tensor, bound: float) -> bool:
    return bool(((x.double() - y.double()).abs() <= bound).all())


def _magnitude(gradients: Gradients, given: Sequence[torch.Tensor]) -> float:
    each = [*given, *(gradient for gradient in gradients if gradient is not None)]
    sizes = [x.abs().nan_to_num(0.0, posinf=0.0).max().item() for x in each if x.numel()]
    return max(sizes, default=0.0)


def _name(place: int) -> str:
    return f"the gradient of input {place} of those that require one"


def _is_far(eager: torch.Tensor | None, own: torch.Tensor, place: int) -> bool:
    """Raises: Differs, where no rounding is an excuse."""
    if eager is None:
        if own.count_nonzero():
            raise Differs(f"{_name(place)} is none in eager execution")
        return False
    if (eager.shape, eager.dtype) != (own.shape, own.dtype):
        raise Differs(f"{_name(place)} has another shape or dtype")
    return eager.numel() > 0 and not is_near(eager, own, TOLERANCES.get(eager.dtype, 0.0))
