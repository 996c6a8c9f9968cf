# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled callable has done so far."""


def programs(compiled) -> int:
    """How many programs a callable has compiled."""
    return len(compiled.artifact_paths)
