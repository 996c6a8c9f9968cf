# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What this machine could do at most: the roofline model.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from weft import machine


def peak_flops(threads: int) -> float:
    """The most float32 operations per second; a multiply-add counts as two."""
    return machine.rate("flops", threads)


def peak_bandwidth(threads: int) -> float:
    """The most bytes per second that can be read from memory."""
    return machine.rate("memory_bandwidth", threads)


def least_seconds(flops: int, moved: int, threads: int) -> float:
    """The seconds that `flops` operations and `moved` bytes take at least, if both run at their
    peak.

    Tensors that are in a cache move faster than memory's peak, so that a kernel may take less.
    """
    return max(flops / peak_flops(threads), moved / peak_bandwidth(threads))
