# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What this machine could do at most: the roofline model.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from weft import machine


def peak_flops(threads: int) -> float:
    """The most float32 operations a second; a multiply-add is two."""
    return machine.rate("flops", threads)


def peak_bandwidth(threads: int) -> float:
    """The most bytes a second that are read from memory."""
    return machine.rate("memory_bandwidth", threads)


def least_seconds(flops: int, moved: int, threads: int) -> float:
    """The time that `flops` operations and `moved` bytes need when both come at their peak.

    Tensors that lie in a cache move faster than memory's peak, so that less is possible.
    """
    return max(flops / peak_flops(threads), moved / peak_bandwidth(threads))
