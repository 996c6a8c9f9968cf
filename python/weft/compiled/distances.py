# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far rounding may take two computations of the same values apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from weft.frontend.random_rounding import Spread

# How far plain rounding may take two computations of the same value apart, relative to the element
# and to the mean of the tensor. Beyond that a float64 run decides.
TOLERANCES = {
    torch.float64: 1e-12,
    torch.float32: 2e-5,
    torch.bfloat16: 2e-2,
    torch.float16: 3e-3,
}
# With operands rounded to bfloat16, whose 8 bits give 2**-8 for each operand: in a network of some
# dozen layers the largest error of many elements is some twenty times that.
_OF_ROUNDED_OPERANDS = 0.1
# If float64 decides, eager execution may be so many tolerances from it: where rounding has a larger
# effect there is no right result, and beyond that it is not the same computation.
_MOST_TOLERANCES = 500
# The same in float64, where random rounding decides.
MOST_IN_FLOAT64 = _MOST_TOLERANCES * TOLERANCES[torch.float64]
# A program's result may be so many times as far from float64 as eager execution's; sums in another
# order are sometimes twice as far.
_WORSE = 4
# A sum of values that underflow may lose so many of the type's smallest numbers, in any order.
_SMALLEST = 8
# So many numbers are compared at once: what is made of them stays in the cache, and PyTorch wakes
# no other thread for them.
_COMPARED_AT_ONCE = 1 << 14
# Two computations of what a float64 result is made of may differ by so many last bits.
_LAST_BITS = 8


def allowed_by(precision: str) -> float:
    """The relative error that the user's option `precision` allows."""
    return _OF_ROUNDED_OPERANDS if precision == "bf16" else 0.0


@dataclass(frozen=True)
class Exact:
    """A result in float64. rounded: PyTorch's result for the graph in its own types. magnitude: the
    largest of the values it was last computed from. added_up: the largest that was added up into
    it. coarsest: the largest eps of the types of what it was computed from. spread: gives what
    rounding does to it."""

    value: torch.Tensor
    rounded: torch.Tensor
    magnitude: float
    added_up: float
    coarsest: float
    spread: Callable[[], Spread | None] = lambda: None

    def excuses(self, eager: torch.Tensor, own: torch.Tensor) -> bool:
        """Whether rounding alone may explain the difference from PyTorch's result."""
        if eager.dtype not in TOLERANCES:
            return False
        eps = torch.finfo(eager.dtype).eps
        if eager.dtype == torch.float64 and self.coarsest <= eps:  # nothing is more precise
            if ((eager - own).abs() <= _LAST_BITS * eps * self.magnitude).all():
                return True
        elif as_exact(eager, own, self.value, self._tolerance(eager.dtype)):
            return True
        if eager.dtype == torch.float64:
            spread = self.spread()
            return spread is not None and spread.excuses(eager, own)
        return eager.dtype == torch.float32 and self._is_left_of_zero(eager, own)

    def _tolerance(self, dtype: torch.dtype) -> float:
        """Of the narrowest type on the way. dtype: the result's."""
        coarse = [t for each, t in TOLERANCES.items() if torch.finfo(each).eps <= self.coarsest]
        return max([TOLERANCES[dtype], *coarse])

    def _is_left_of_zero(self, eager: torch.Tensor, own: torch.Tensor) -> bool:
        """Whether both are only the last bits of a sum that cancels, as for a batch norm's mean
        right after another batch norm. They must be small compared with one, and no larger than the
        graph's own rounding errors, or than what random rounding makes of these: where few errors
        add up, one computation may happen to have small ones."""
        last_bits = _LAST_BITS * torch.finfo(eager.dtype).eps * min(self.added_up, 1.0)
        furthest = torch.maximum(*((x.double() - self.value).abs().max() for x in (eager, own)))
        if not furthest <= last_bits:
            return False
        if furthest <= _WORSE * (self.rounded.double() - self.value).abs().max():
            return True
        spread = self.spread()
        return spread is not None and bool(furthest <= spread.largest)


def is_near(eager: torch.Tensor, own: torch.Tensor, tolerance: float) -> bool:
    return _is_near(eager.detach(), own.detach(), tolerance, eager.dtype)


def _is_near(x: torch.Tensor, y: torch.Tensor, tolerance: float, dtype: torch.dtype) -> bool:
    """Compares in float64, part by part: whole copies of large tensors take more time and memory
    than the program. dtype: the type in which the numbers were computed."""
    parts = [each.reshape(-1).split(_COMPARED_AT_ONCE) for each in (x, y)]
    total, count = 0.0, 0
    for part in parts[0]:
        finite = _finite(part.double())
        total += float(finite.abs().sum())
        count += finite.numel()
    least = tolerance * total / max(count, 1)
    if dtype.is_floating_point:
        least += _SMALLEST * torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    return all(
        _are_within(one.double(), other.double(), tolerance, least)
        for one, other in zip(*parts, strict=True)
    )


def _finite(x: torch.Tensor) -> torch.Tensor:
    finite = x.isfinite()
    return x if finite.all() else x[finite]


def _are_within(x: torch.Tensor, y: torch.Tensor, tolerance: float, least: float) -> bool:
    """Whether infinities and NaNs are in the same places, and the rest is no further apart than the
    tolerance, of x, and `least` allow."""
    finite = x.isfinite()
    if not finite.all():
        if not torch.equal(x[~finite].nan_to_num(7.0), y[~finite].nan_to_num(7.0)):
            return False
        x, y = x[finite], y[finite]
    return bool(((x - y).abs() <= tolerance * x.abs() + least).all())


def as_exact(eager: torch.Tensor, own: torch.Tensor, exact: torch.Tensor, tolerance: float) -> bool:
    """Whether the program is about as close to float64 as eager execution. If float64 has an
    infinity or NaN and eager execution another one, the program may have either: for infinity,
    PyTorch's vectorized gelu gives NaN, while float64's and its own scalar gelu do not."""
    x, y, z = (each.detach().double().flatten() for each in (eager, own, exact))
    finite = x.isfinite() & z.isfinite()
    as_float64 = ~x.isfinite() & ~z.isfinite() & same_values(y, z)
    if not (finite | as_float64 | same_values(x, y)).all():
        return False
    x, y, z = x[finite], y[finite], z[finite]
    if not x.numel():
        return True
    if not _is_near(z, x, _MOST_TOLERANCES * tolerance, eager.dtype):
        return False
    eps = torch.finfo(eager.dtype).eps
    slack = _WORSE * eps * (z.abs() + z.abs().mean()) + torch.finfo(eager.dtype).tiny
    return bool(((y - z).abs() <= _WORSE * (x - z).abs().max() + slack).all())


def same_values(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Compares element by element; NaNs are equal."""
    return (one == other) | (one.isnan() & other.isnan())


def example_of(eager: torch.Tensor, own: torch.Tensor) -> str:
    """The elements that are furthest apart, in words."""
    x, y = eager.detach().flatten(), own.detach().flatten()
    wide = torch.complex128 if x.is_complex() else torch.float64
    apart = (x.to(wide) - y.to(wide)).abs().nan_to_num(nan=math.inf)
    at = int(apart.where(~same_values(x, y), -1.0).argmax())
    return f"{y[at].item()} instead of {x[at].item()} at {at} of {x.numel()}"
