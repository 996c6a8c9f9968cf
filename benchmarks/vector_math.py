#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Error over all 2^32 floats, and time per element beside eager PyTorch, of each elementary
function. About a minute per function; `--stride 257` is quick."""

import argparse
import sys
import time
from pathlib import Path

import torch

import weft

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "python"))
from ulps import FUNCTIONS, bit_patterns, worst_error  # noqa: E402

CHUNK = 2**22
TIMED_SHAPE = (128, 768)
REPEATS = 200


def nanoseconds_per_element(function, x):
    """The fastest of REPEATS calls."""
    function(x)
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        function(x)
        best = min(best, time.perf_counter() - start)
    return best / x.numel() * 1e9


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS))
    arguments = parser.parse_args()
    timed = torch.rand(TIMED_SHAPE) * 4
    print(f"{'function':10} {'ULP':>6} {'at':>14} {'ns/element':>11} {'PyTorch':>8}")
    weft.config.verify = "off"  # the first call is measured, too
    for name in arguments.functions:
        function = FUNCTIONS[name][0]
        compiled = weft.compile(function)
        worst, where = max(
            worst_error(name, x, compiled(x)) for x in bit_patterns(arguments.stride, CHUNK)
        )
        ours = nanoseconds_per_element(weft.compile(function), timed)
        theirs = nanoseconds_per_element(function, timed)
        print(f"{name:10} {worst:6.3f} {where:14.6g} {ours:11.3f} {theirs:8.3f}", flush=True)


if __name__ == "__main__":
    main()
