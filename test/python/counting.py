# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled callable has done so far."""

from weft.compiled.module import callable_of


def programs(compiled) -> int:
    """How many programs a callable has compiled."""
    return len(compiled.artifact_paths)


def latest(compiled):
    """The latest program of a callable or module, with the object behind it."""
    return callable_of(compiled).face.programs.latest()
