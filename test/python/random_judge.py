# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges the results of a compiled random program: floats may be no further from float64 than
rounding explains, and everything else must equal PyTorch's results."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from compiled_cases import strides
from random_programs import Program
from random_runs import same, share_memory

# The factor by which a program's error may exceed that of the rounded runs.
SLACK = 4


def differences(
    program: Program, found: Sequence[Any], arguments: Sequence[torch.Tensor]
) -> list[str]:
    """What is wrong with the results, and with the arguments after the call."""
    names = [*program.results, *(argument.name for argument in program.arguments)]
    values = [*found, *arguments]
    wanted = [program.runs[0].names[name] for name in names]
    wrong = [
        text
        for name, value in zip(names, values, strict=True)
        if (text := _difference(name, value, program)) is not None
    ]
    for i, j in itertools.combinations(range(len(names)), 2):
        if min(wanted[i].numel(), wanted[j].numel()) == 0:
            continue
        if share_memory(values[i], values[j]) != share_memory(wanted[i], wanted[j]):
            wrong.append(f"{names[i]} and {names[j]} share memory in one of both")
    return wrong


def _difference(name: str, found: torch.Tensor, program: Program) -> str | None:
    eager, double, tolerance = _tolerances(program, name)
    for what in ("dtype", "shape"):
        if getattr(found, what) != getattr(eager, what):
            return f"{name}: {what} {getattr(found, what)} for {getattr(eager, what)}"
    # Strides of dimensions of size 1 are those of the first call, which may have been another
    # program with the same code.
    if strides(found) != strides(eager):
        return f"{name}: strides {found.stride()} for {eager.stride()}"
    if not eager.is_floating_point():
        wrong = found != eager
    else:
        # If one has overflowed, the other need not have.
        finite = eager.isfinite() & double.isfinite()
        close = (found.double() - double).abs() <= tolerance
        as_eager = same(found, eager)
        wrong = torch.where(finite, ~(close | as_eager), _unlike(eager, double, found))
    if not wrong.any():
        return None
    place = tuple(wrong.nonzero()[0].tolist())
    return (
        f"{name}{list(place)}: {found[place].item()!r}, PyTorch {eager[place].item()!r}, "
        f"float64 {double[place].item()!r}, tolerance {tolerance[place].item():.3g}; "
        f"{int(wrong.sum())} of {wrong.numel()} elements"
    )


def _unlike(eager: torch.Tensor, double: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """Where an infinity or NaN that PyTorch and float64 have in common is missing."""
    return same(eager.double(), double) & ~same(found, eager)


def _tolerances(program: Program, name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """For a value: PyTorch's result, the float64 result, and the allowed distance from it."""
    eager, double, *rounded = (run.names[name] for run in program.runs)
    if not eager.is_floating_point():
        return eager, double, torch.zeros(eager.shape)
    spread = torch.stack([(each - double).abs() for each in rounded]).amax(0)
    error = (eager.double() - double).abs()
    eps = torch.finfo(eager.dtype).eps
    least = torch.finfo(eager.dtype).smallest_normal
    # Float64 is compared with itself, which hides eager's error: sums have some hundred terms.
    ulps = 64 if eager.dtype == torch.float64 else 2
    tolerance = SLACK * spread + 2 * error + ulps * eps * double.abs() + least
    return eager, double, tolerance
