# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a backward program gives the gradients of eager execution, found out on one call.

PyTorch differentiates the call that it has run, along random cotangents of a generator of our own,
and so does the program. Which outputs require gradients, and which inputs autograd connects with
which outputs, is learnt on the way.
"""

from __future__ import annotations

import torch

from weft.compiled.training import Cotangents, Training
from weft.compiled.verification import (
    TOLERANCES,
    Check,
    Differs,
    Finding,
    Unclear,
    Verdict,
    as_exact,
    example_of,
    is_near,
)

# Each output's connections are found by a backward of its own.
_MOST_OUTPUTS = 16
_SEED = 0
# How much further apart gradients may be where float64 cannot tell, as numbers are drawn anew.
_WHERE_RANDOM = 10
# What of a gradient that ought to be zero nobody takes for a number.
_NOISE = 1e-6
# How many last bits of what gradients are computed from two computations may disagree by.
_LAST_BITS = 16


def compare_gradients(training: Training, check: Check, finding: Finding) -> Finding:
    """`finding`, or what is wrong with the gradients. check: concluded."""
    try:
        _compare(training, check)
    except Differs as why:
        return Finding(Verdict.DIFFERENT, str(why))
    except Unclear as why:
        return Finding(Verdict.INCONCLUSIVE, str(why))
    return finding


def _compare(training: Training, check: Check) -> None:
    outputs = [check.eager.get(number) for number in training.outputs]
    requires = [each is not None and each.requires_grad for each in outputs]
    if not any(requires):
        raise Differs("eager execution gives nothing that requires gradients")
    if sum(requires) > _MOST_OUTPUTS:
        raise Differs(f"more than {_MOST_OUTPUTS} results require gradients")
    wanted = [check.sources[number] for number in training.wrt]
    for tensor in (*wanted, *outputs):
        if tensor is not None and tensor._backward_hooks:
            raise Unclear("a hook on a tensor would see gradients that nobody asked for")
    generator = torch.Generator().manual_seed(_SEED)
    connected = []
    for number, output, is_so in zip(training.outputs, outputs, requires, strict=True):
        if not is_so:
            connected.append([False] * len(wanted))
            continue
        given = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        given = given.to(output.dtype)
        gradients = torch.autograd.grad(output, wanted, given, retain_graph=True, allow_unused=True)
        alone = {each: given if each == number else None for each in training.outputs}
        _compare_values(training, check, gradients, alone, given)
        connected.append([each is not None for each in gradients])
    training.requires, training.connected = requires, connected


def _compare_values(
    training: Training,
    check: Check,
    eager: tuple[torch.Tensor | None, ...],
    cotangents: Cotangents,
    given: torch.Tensor,
) -> None:
    own = training.gradients(check.inputs, check.results, cotangents)
    far = [
        place for place, (x, y) in enumerate(zip(eager, own, strict=True)) if _is_far(x, y, place)
    ]
    exact = _exact(training, check, cotangents) if far else None
    magnitude = _magnitude(eager, given)
    for place in far:
        x, y = eager[place], own[place]
        reference = None if exact is None else exact[place]
        if reference is not None and _is_noise(x, reference):
            raise Differs(f"{_name(place)} is rounding noise alone in eager execution")
        if not _excused(x, y, reference, magnitude):
            raise Differs(f"{_name(place)} differs: {example_of(x, y)}")


def _excused(
    eager: torch.Tensor, own: torch.Tensor, exact: torch.Tensor | None, magnitude: float
) -> bool:
    """Whether rounding alone may have taken the two apart. exact: in float64, None where that
    cannot be known. magnitude: of what was computed with, whose last bits are left where it
    cancels."""
    last_bits = _LAST_BITS * torch.finfo(eager.dtype).eps * magnitude
    if _within(eager, own, last_bits):
        return True
    tolerance = TOLERANCES.get(eager.dtype, 0.0)
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


def _magnitude(gradients: tuple[torch.Tensor | None, ...], given: torch.Tensor) -> float:
    each = [given, *(gradient for gradient in gradients if gradient is not None)]
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


def _exact(
    training: Training, check: Check, cotangents: Cotangents
) -> list[torch.Tensor | None] | None:
    """In float64; None where the graph draws random numbers.

    Raises: Differs, where float64 has no kernel.
    """
    if check.draws:
        return None
    inputs = [
        each.detach().clone().requires_grad_(number in training.wrt)
        for number, each in enumerate(check.inputs)
    ]
    try:
        return training.gradients_by_pytorch(inputs, cotangents, double=True)
    except Exception as error:
        raise Differs(f"gradients differ, and float64 has no say: {error}") from None
