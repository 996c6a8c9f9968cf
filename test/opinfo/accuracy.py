# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a program's values are as good as PyTorch's.

Integers are equal. The error of floats may be 1.5 times eager's, plus 2 ULP of the type, where both
are measured against a better value (`references`). NaN, infinities and the sign of zeros are
eager's, or those of the better value rounded to the type.

Errors are measured in ULP, element by element, and eager's is the largest of the tensor's elements.
Where an op sums, what cancels leaves few digits to small results, so that there an error may also
be as large as eager's largest, in absolute terms. The sample's own numbers may suit eager by
chance: what is found too far is measured again, against eager's error at the sample's neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from opinfo.calls import Call, Ran, copies, run
from opinfo.references import is_pointwise, real, reference_of
from opinfo.unspecified import NOT_FINITE, ZEROS_OF_ANY_SIGN

_MOST_OF_EAGER = 1.5
_MOST_ULPS = 2.0
_NEIGHBOURS = 12
# Of float64 where nothing better is known: 64 ULP of eager's value, since a sample's sums are some
# hundred terms long; or 4 times what a change of the arguments in their last bits does to it.
_MOST_ULPS_OF_EAGER = 64.0
_MOST_OF_CHANGE = 4.0
_OF_EXTREMES = 2.0**-20


@dataclass
class _Errors:
    """In ULP and in absolute terms, by element, in float64."""

    ulps: torch.Tensor
    absolute: torch.Tensor

    @staticmethod
    def of(value: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> _Errors:
        absolute = torch.where(value == exact, 0.0, (value - exact).abs())
        return _Errors(absolute / _ulp(exact, dtype), absolute)


class Accuracy:
    """Of one call. The better values are computed where they are needed."""

    def __init__(self, op: str, call: Call, eager: Ran) -> None:
        self._op = op
        self._call = call
        self._eager = eager
        self._better: list[torch.Tensor | None] | None = None

    def difference(self, number: int, want: torch.Tensor, got: torch.Tensor) -> str | None:
        """What is wrong with `got`, if anything is. number: among the result's leaves and the
        arguments; want: eager's. Complex numbers are judged as pairs."""
        want, got = real(want), real(got)
        if want.numel() == 0 or _equal(want, got):
            return None
        if not want.dtype.is_floating_point:
            wrong = want != got
            return f"{_shown(want, got, wrong)}; {int(wrong.sum())} of {want.numel()} differ"
        x, y = want.detach().double(), got.detach().double()
        z = self._exact(number, want)
        rounded = z.to(want.dtype).double()
        special = ~(x.isfinite() & y.isfinite() & rounded.isfinite())
        own = _Errors.of(y, z, want.dtype)
        agrees = _alike(y, x) | _alike(y, rounded) | (y.isfinite() & (own.ulps <= _MOST_ULPS))
        if not is_pointwise(self._op) and self._is_finite():
            # What sums that overflow become depends on their order.
            agrees |= ~x.isfinite() & ~y.isfinite()
        if self._op in NOT_FINITE and not self._is_finite():
            agrees |= ~x.isfinite() | ~y.isfinite()
        if not is_pointwise(self._op) and self._has_extremes():
            # They leave nothing of smaller terms, and overflow, by the order of a sum.
            close = own.absolute <= _OF_EXTREMES * torch.finfo(want.dtype).max
            agrees |= close | ~x.isfinite() | ~y.isfinite()
            special |= agrees
        if bool((special & ~agrees).any()):
            wrong = special & ~agrees
            return f"{_shown(want, got, wrong)}, exactly {_first(z, wrong):.9g}"
        signs = ~special & (y == 0) & (x == 0) & (y.signbit() != x.signbit())
        signs &= y.signbit() != rounded.signbit()
        if bool(signs.any()) and self._op not in ZEROS_OF_ANY_SIGN:
            return f"sign of zero, {_shown(want, got, signs)}"
        if bool(special.all()):
            return None
        return self._too_far(number, want, got, z, own, ~special)

    def _too_far(
        self,
        number: int,
        want: torch.Tensor,
        got: torch.Tensor,
        exact: torch.Tensor,
        own: _Errors,
        ordinary: torch.Tensor,
    ) -> str | None:
        eager = _Errors.of(want.detach().double(), exact, want.dtype)
        far = ordinary & self._beyond(own, eager, exact, want.dtype, ordinary)
        if not bool(far.any()):
            return None
        for each in self._at_neighbours(number, want):
            for kind in ("ulps", "absolute"):
                known = getattr(eager, kind)
                setattr(eager, kind, torch.maximum(known, getattr(each, kind).nan_to_num(0, 0)))
        far = ordinary & self._beyond(own, eager, exact, want.dtype, ordinary)
        if not bool(far.any()):
            return None
        worst = far & (own.ulps == own.ulps[far].max())
        return (
            f"{_shown(want, got, worst)}, exactly {_first(exact, worst):.9g}: "
            f"{_first(own.ulps, worst):.3g} ULP, eager's at most {eager.ulps[ordinary].max():.3g}; "
            f"{int(far.sum())} of {want.numel()}"
        )

    def _beyond(
        self,
        own: _Errors,
        eager: _Errors,
        exact: torch.Tensor,
        dtype: torch.dtype,
        ordinary: torch.Tensor,
    ) -> torch.Tensor:
        is_known = dtype != torch.float64 or self._better_values()[0] is not None
        share = _MOST_OF_EAGER if is_known else _MOST_OF_CHANGE
        slack = _MOST_ULPS if is_known else _MOST_ULPS_OF_EAGER
        far = own.ulps > share * eager.ulps[ordinary].max() + slack
        if not is_pointwise(self._op):
            unit = _ulp(exact[ordinary].abs().max(), dtype)
            far &= own.absolute > share * eager.absolute[ordinary].max() + slack * unit
        return far

    def _better_values(self) -> list[torch.Tensor | None]:
        if self._better is None:
            self._better = reference_of(self._op, self._call, self._eager)
        return self._better

    def _exact(self, number: int, want: torch.Tensor) -> torch.Tensor:
        return _or_eager(self._better_values()[number], want)

    def _at_neighbours(self, number: int, want: torch.Tensor) -> list[_Errors]:
        """Eager's errors where the arguments are some ULP further; for want of a better value,
        what the change does to eager's."""
        found = []
        generator = torch.Generator().manual_seed(0)
        for _ in range(_NEIGHBOURS):
            # Where there are no floats, integers are what is summed; beside them, mostly indices.
            move = partial(_moved if self._floats() else _moved_integers, generator=generator)
            call = self._call.mapped("", move)
            eager = run(call.on, copies(call.tensors))
            if eager.error is not None or len(eager.leaves) != len(self._eager.leaves):
                continue
            value = real(eager.leaves[number])
            if value.shape != want.shape or value.dtype != want.dtype:
                continue
            better = reference_of(self._op, call, eager)[number]
            exact = want.detach().double() if better is None else _or_eager(better, value)
            found.append(_Errors.of(value.detach().double(), exact, want.dtype))
        return found

    def _has_extremes(self) -> bool:
        largest = ((x.abs(), torch.finfo(x.dtype).max) for x in self._floats())
        return self._is_finite() and any(bool((x > most / 2).any()) for x, most in largest)

    def _is_finite(self) -> bool:
        return all(bool(x.isfinite().all()) for x in self._floats())

    def _floats(self) -> list[torch.Tensor]:
        tensors = (x for x in self._call.tensors if x.layout == torch.strided)
        return [x for x in tensors if x.dtype.is_floating_point]


def _or_eager(better: torch.Tensor | None, eager: torch.Tensor) -> torch.Tensor:
    """In float64; of what has no better value, and where float64 has none, eager's."""
    own = eager.detach().double()
    if better is None or better.shape != eager.shape:
        return own
    if eager.dtype == torch.float64:
        return torch.where(better.isnan(), own, better)
    return better


def _moved(leaf: object, generator: torch.Generator) -> object:
    """By up to 4 ULP, element by element."""
    if not isinstance(leaf, torch.Tensor) or not leaf.dtype.is_floating_point:
        return leaf
    if leaf.layout != torch.strided:
        return leaf
    steps = torch.randint(-4, 5, leaf.shape, generator=generator).to(leaf.dtype)
    moved = leaf + leaf * (steps * torch.finfo(leaf.dtype).eps)
    return torch.where(moved.isfinite(), moved, leaf)


def _moved_integers(leaf: object, generator: torch.Generator) -> object:
    """By one at most, element by element, none from or to below zero."""
    if not isinstance(leaf, torch.Tensor) or leaf.dtype == torch.bool or leaf.is_complex():
        return leaf
    steps = torch.randint(-1, 2, leaf.shape, generator=generator).to(leaf.dtype)
    return torch.where((leaf > 0) & (leaf + steps >= 0), leaf + steps, leaf)


def _equal(want: torch.Tensor, got: torch.Tensor) -> bool:
    if not want.dtype.is_floating_point:
        return torch.equal(want, got)
    x, y = want.detach(), got.detach()
    return bool((_alike(x, y) & ((x != 0) | (x.signbit() == y.signbit()))).all())


def _alike(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x == y) | (x.isnan() & y.isnan())


def _ulp(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The distance of neighbours of `dtype` around values in float64."""
    info = torch.finfo(dtype)
    magnitude = exact.abs().clamp(min=info.smallest_normal)
    return torch.exp2(torch.frexp(magnitude).exponent.double() - 1) * info.eps


def _shown(want: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> str:
    """The first wrong element."""
    at = int(wrong.flatten().to(torch.uint8).argmax())
    index = (
        [int(i) for i in torch.unravel_index(torch.tensor(at), want.shape)] if want.dim() else []
    )
    return f"{_first(got, wrong)!r} instead of {_first(want, wrong)!r} at {index}"


def _first(values: torch.Tensor, chosen: torch.Tensor) -> float:
    return values.detach()[chosen].flatten()[0].item()
