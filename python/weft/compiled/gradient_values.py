# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a program's gradients with those of eager execution, up to rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from weft.compiled.distances import MOST_IN_FLOAT64, TOLERANCES, as_exact, example_of, is_near
from weft.compiled.rounded import Rounded
from weft.compiled.verification import Differs
from weft.frontend.random_rounding import Spread

# The tolerance's factor where float64 cannot decide: random numbers are drawn anew, or values have
# other slopes.
WHERE_RANDOM = 10
# A gradient that ought to be zero, along cotangents of size one, counts as zero below this.
_NOISE = 5e-6
# Where its rounding errors are so many times as large, a gradient is zero in exact arithmetic.
_OF_ZERO = 1e4
# Two computations of the values that a gradient is made of may differ by so many last bits.
_LAST_BITS = 16
# Why gradients that `compare_values` does not call equal may be right all the same.
OF_OTHER_SLOPES = "a gradient differs: the last bit of a value decides on a slope"

Gradients = Sequence[torch.Tensor | None]


def compare_values(
    eager: Gradients,
    own: Sequence[torch.Tensor],
    exact: Callable[[], Gradients | None],
    given: Sequence[torch.Tensor],
    coarsest: float = 0.0,
    rounded: Rounded | None = None,
    allowed: float = 0.0,
) -> bool:
    """Whether the gradients agree. If not, they are those of values that rounding has taken to
    either side of a kink: all of them are right.

    exact: a function that gives them in float64, None if that is not possible. given: the
    cotangents. coarsest: the tolerance of the least precise type that anything is rounded to on the
    way. rounded: what rounding may make of each gradient, if that can be asked. allowed: the
    relative error that the user's options allow.
    Raises: Differs.
    """
    far = [
        place
        for place, (x, y) in enumerate(zip(eager, own, strict=True))
        if _is_far(x, y, place) and not (allowed and _is_allowed(x, y, allowed))
    ]
    references = exact() if far else None
    magnitude = _magnitude(eager, given)
    differences: dict[int, Differs] = {}
    for place in far:
        x, y = eager[place], own[place]
        reference = None if references is None else references[place]
        # With the few bits of half precision, noise is normal.
        if reference is not None and not coarsest and _is_noise(x, reference):
            why = Differs(f"{_name(place)} is rounding noise alone in eager execution")
            least = torch.finfo(x.dtype).eps * magnitude
            if rounded and _is_left_of_zero(x, y, reference, least, rounded, place):
                continue
            if _is_noise(x, reference, 1.0):
                raise why
            differences[place] = why
        elif not _excused(x, y, reference, magnitude, coarsest):
            is_widest = x.dtype == torch.float64 and rounded is not None
            spread = rounded.spreads[place] if is_widest else None
            if not _excused_in_float64(x, y, reference, spread):
                differences[place] = Differs(f"{_name(place)} differs: {example_of(x, y)}")
    if not differences:
        return True
    may_be_kinks = not coarsest and all(eager[each].dtype == torch.float32 for each in differences)
    if may_be_kinks and rounded is not None and references is not None:
        found = {place: (eager[place], own[place]) for place in differences}
        if rounded.gives(found, references, WHERE_RANDOM * TOLERANCES[torch.float32]):
            return False
    raise next(iter(differences.values()))


def _excused(
    eager: torch.Tensor,
    own: torch.Tensor,
    exact: torch.Tensor | None,
    magnitude: float,
    coarsest: float,
) -> bool:
    """Whether rounding alone may explain the difference. exact: the gradient in float64, None if
    that is not possible. magnitude: of the values it was computed from, whose last bits remain if
    they cancel."""
    last_bits = _LAST_BITS * torch.finfo(eager.dtype).eps * magnitude
    if _within(eager, own, last_bits):
        return True
    tolerance = max(TOLERANCES.get(eager.dtype, 0.0), coarsest)
    if exact is None or eager.dtype == torch.float64:  # nothing is more precise than float64
        return is_near(eager, own, WHERE_RANDOM * tolerance)
    if as_exact(eager, own, exact, tolerance):
        return True
    return _within(eager, exact, last_bits) and _within(own, exact, last_bits)


def _excused_in_float64(
    eager: torch.Tensor, own: torch.Tensor, exact: torch.Tensor | None, spread: Spread | None
) -> bool:
    """Whether rounding alone may explain the difference of gradients in float64. exact: with all of
    the graph in float64, which decides as well where narrower types round on the way."""
    if spread is None or not spread.excuses(eager, own):
        return False
    if is_near(eager, own, MOST_IN_FLOAT64):
        return True
    return exact is not None and as_exact(eager, own, exact, spread.most)


def _is_noise(eager: torch.Tensor, exact: torch.Tensor, part: float = 0.01) -> bool:
    """Whether the gradient of eager execution is only what rounding has left of a sum that cancels,
    such as the gradient of a bias before a batch norm. Then no other value can be called wrong.
    part: of the gradient, that rounding may change."""
    if eager.dtype != torch.float32:  # with the few bits of half precision this is normal
        return False
    error = (eager.double() - exact).abs().max().item()
    return error > _NOISE and error > part * exact.abs().max().item()


def _is_left_of_zero(
    eager: torch.Tensor,
    own: torch.Tensor,
    exact: torch.Tensor,
    least: float,
    rounded: Rounded,
    place: int,
) -> bool:
    """Whether both are what rounding leaves of a gradient that is zero, as that of a batch norm's
    bias ahead of another one. They have to be no larger than what random rounding leaves of it, and
    than `least`: less than the last bit of the largest gradient."""
    pair = (eager, own)
    if not _is_noise(eager, exact, _OF_ZERO) or not all(_within(x, exact, least) for x in pair):
        return False
    spread = rounded.spreads[place]
    return spread is not None and all(_within(x, exact, spread.largest) for x in pair)


def _within(x: torch.Tensor, y: torch.Tensor, bound: float) -> bool:
    return bool(((x.double() - y.double()).abs() <= bound).all())


def _magnitude(gradients: Gradients, given: Sequence[torch.Tensor]) -> float:
    each = [*given, *(gradient for gradient in gradients if gradient is not None)]
    sizes = [x.abs().nan_to_num(0.0, posinf=0.0).max().item() for x in each if x.numel()]
    return max(sizes, default=0.0)


def _is_allowed(eager: torch.Tensor, own: torch.Tensor, allowed: float) -> bool:
    """Whether the error of all elements together is within what is allowed: of a single one it may
    be larger, where rounding has moved what a kink, such as relu's, decides."""
    x, y = eager.double(), own.double()
    finite = x.isfinite()
    if not torch.equal(finite, y.isfinite()):
        return False
    return bool((x - y)[finite].norm() <= allowed * x[finite].norm())


def _name(place: int) -> str:
    return f"the gradient of input {place} of those that require one"


def _is_far(eager: torch.Tensor | None, own: torch.Tensor, place: int) -> bool:
    """Whether the gradients differ by more than rounding. Raises: Differs, if no rounding can
    explain it."""
    if eager is None:
        if own.count_nonzero():
            raise Differs(f"{_name(place)} is none in eager execution")
        return False
    if (eager.shape, eager.dtype) != (own.shape, own.dtype):
        raise Differs(f"{_name(place)} has another shape or dtype")
    return eager.numel() > 0 and not is_near(eager, own, TOLERANCES.get(eager.dtype, 0.0))
