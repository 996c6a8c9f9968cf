# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What schedules and loops need to know of the machine: the width of its vectors."""

from __future__ import annotations

import os

from weft import _core
from weft.artifacts.builds import cpu_flags


def vector_bytes() -> int:
    """The bytes of a vector register, for the instruction set that the compiler uses (WEFT_ISA)."""
    isa = os.environ.get("WEFT_ISA", "native")
    return 64 if isa != "avx2" and "avx512f" in cpu_flags().split() else 32


def lanes_of(element_bytes: int) -> int:
    return vector_bytes() // element_bytes


def vector_registers() -> int:
    return 32 if vector_bytes() == 64 else 16


def masks_elements_of(element_bytes: int) -> bool:
    """Whether loading or storing a vector's first elements is one instruction."""
    return vector_bytes() == 64 or element_bytes >= 4


def has_matrix_unit(feature: str) -> bool:
    """Whether the compiler uses the matrix unit's products that Linux calls amx_bf16 or amx_int8:
    the processor has them, and the system lets this process use them."""
    isa = os.environ.get("WEFT_ISA", "native")
    return isa in ("native", "amx") and not _core.missing_cpu_features(["amx_tile", feature])
