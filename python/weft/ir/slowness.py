# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pass slows a program down: the one without which it is faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from weft import errors
from weft.artifacts.load import LoadedArtifact
from weft.ir.module import Module
from weft.ir.passes import Pass
from weft.ir.running import loaded

_ROUNDS = 7

Prepared = tuple[LoadedArtifact, list[torch.Tensor]]


@dataclass(frozen=True)
class Slowdown:
    """before: seconds of a call of the program without the pass. after: with it. diff: what the
    pass makes different in the end, at the stage `kernels`."""

    pass_name: str
    before: float
    after: float
    diff: str = field(repr=False, default="")

    def __str__(self) -> str:
        times = f"{self.after * 1e6:.1f} us with it, {self.before * 1e6:.1f} us without"
        return f"{self.pass_name}: {times}\n{self.diff}".rstrip()


def first_slow(
    module: Module,
    steps: Sequence[tuple[str, Pass]],
    inputs: Sequence[torch.Tensor],
    factor: float,
    options: dict[str, Any],
) -> Slowdown | None:
    """The first step without which the program is more than `factor` times as fast. A step that
    the others cannot do without is passed over.

    steps: from the graph to `kernels`.
    """
    from weft.ir.comparing import diff

    whole = _through(module, steps)
    program = _prepared(whole, inputs, options)
    for number, (name, _) in enumerate(steps):
        try:
            other = _through(module, [*steps[:number], *steps[number + 1 :]])
            if str(other) == str(whole):
                continue
            after, before = measure(program, _prepared(other, inputs, options))
        except (errors.CompileError, errors.PassError, errors.IRError):
            continue  # what it leaves is needed
        if after > factor * before:
            return Slowdown(name, before, after, diff(other, whole))
    return None


def measure(*programs: Prepared) -> list[float]:
    """The least seconds of a call of each, in turns."""
    best = [float("inf")] * len(programs)
    with torch.no_grad():
        for _ in range(_ROUNDS):
            for number, (program, arguments) in enumerate(programs):
                best[number] = min(best[number], sum(program.time(*arguments)))
    return best


def _through(module: Module, steps: Sequence[tuple[str, Pass]]) -> Module:
    changed = module.clone()
    for _, step in steps:
        step(changed)
    changed.stage = "kernels"
    return changed


def _prepared(module: Module, inputs: Sequence[torch.Tensor], options: dict[str, Any]) -> Prepared:
    program, complete = loaded(module, options)
    return program, complete(inputs)
