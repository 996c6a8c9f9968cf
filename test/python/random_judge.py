# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges what a compiled random program computes: floats are no further from float64 than rounding
explains, all else is PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from compiled_cases import strides
from random_programs import Program
from random_runs import same, share_memory

# How much further from float64 than the rounded runs a program may be.
SLACK = 4


def differences(
    program: Program, found: Sequence[Any], arguments: Sequence[torch.Tensor]
) -> list[str]:
    """What is wrong with results and with arguments after the call."""
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
    # Those of dims of size 1 are the first call's, and that may have been another program's, with
    # the same code.
    if strides(found) != strides(eager):
        return f"{name}: strides {found.stride()} for {eager.stride()}"
    if not eager.is_floating_point():
        wrong = found != eager
    else:
        # Where either has overflowed, the other need not have.
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
    """Where PyTorch's infinity or NaN is what float64 has too, and is missing."""
    return same(eager.double(), double) & ~same(found, eager)


def _tolerances(program: Program, name: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of a value: what PyTorch computes, the same in float64, how far another may be from it."""
    eager, double, *rounded = (run.names[name] for run in program.runs)
    if not eager.is_floating_point():
        return eager, double, torch.zeros(eager.shape)
    spread = torch.stack([(each - double).abs() for each in rounded]).amax(0)
    error = (eager.double() - double).abs()
    eps = torch.finfo(eager.dtype).eps
    least = torch.finfo(eager.dtype).smallest_normal
    # Float64 is its own reference, which hides eager's error: sums are some hundred terms long.
    ulps = 64 if eager.dtype == torch.float64 else 2
    tolerance = SLACK * spread + 2 * error + ulps * eps * double.abs() + least
    return eager, double, tolerance
