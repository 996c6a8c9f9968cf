# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR of a program, or of one half of it, at a stage."""

from __future__ import annotations

from weft import errors
from weft.artifacts.builds import lower_to
from weft.compiled.specialize import Specialized


def lowered(program: Specialized, stage: str, role: str) -> str:
    """The IR of a program, or, for one that trains, of the half `role`, even if its backward has
    not been compiled yet.

    Raises: errors.Error, if there is no backward; errors.CompileError for an unknown stage.
    """
    build, training = program.build, program.training
    if training is None:
        if role == "backward":
            raise errors.Error("the latest program has no backward")
        return lower_to(build.graph, stage, build.options)
    if training.backward is not None or role == "backward" or stage in ("joint", "partitioned"):
        return lower_to(build.graph, stage, training.options(build.options, role or "forward"))
    return lower_to(build.graph, stage, build.options)
