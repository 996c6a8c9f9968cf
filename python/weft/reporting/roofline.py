# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What this machine could do at most, measured once in a process: the roofline model.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from functools import lru_cache

from weft import _core


@lru_cache
def peak_flops(threads: int) -> float:
    """The most float32 operations a second; a multiply-add is two."""
    return _core.measure_peak_flops(threads)


@lru_cache
def peak_bandwidth(threads: int) -> float:
    """The most bytes a second that are read from memory."""
    return _core.measure_peak_bandwidth(threads)


def least_seconds(flops: int, moved: int, threads: int) -> float:
    """The time that `flops` operations and `moved` bytes need when both come at their peak.

    Tensors that lie in a cache move faster than memory's peak, so that less is possible.
    """
    return max(flops / peak_flops(threads), moved / peak_bandwidth(threads))
