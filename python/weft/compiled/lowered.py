# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR of a program, or of one half of it, at a stage, and the schedules of its kernels."""

from __future__ import annotations

from weft import errors
from weft.artifacts.builds import Options, lower_to
from weft.compiled.specialize import Specialized
from weft.reporting.schedules import ChosenSchedule, chosen_schedules


def lowered(program: Specialized, stage: str, role: str) -> str:
    """The IR of a program, or, for one that trains, of the half `role`, even if its backward has
    not been compiled yet.

    Raises: errors.Error, if there is no backward; errors.CompileError for an unknown stage.
    """
    return lower_to(program.build.graph, stage, _options(program, stage, role))


def schedules_of(program: Specialized, role: str) -> list[ChosenSchedule]:
    """What the compiler chooses for the contractions of a program, or of the half `role`.

    Raises: errors.Error, if there is no backward.
    """
    return chosen_schedules(program.build.graph, _options(program, "scheduled", role))


def _options(program: Specialized, stage: str, role: str) -> Options:
    build, training = program.build, program.training
    if training is None:
        if role == "backward":
            raise errors.Error("the latest program has no backward")
        return build.options
    if training.backward is not None or role == "backward" or stage in ("joint", "partitioned"):
        return training.options(build.options, role or "forward")
    return build.options
