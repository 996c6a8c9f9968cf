#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Error and time per element, beside eager PyTorch, of each elementary function: of float32 over
all 2^32 numbers, about a minute per function (`--stride 257` is quick), or with `--double` of
float64 over samples."""

import argparse
import sys
import time
from pathlib import Path

import torch

import weft

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "python"))
import double_ulps  # noqa: E402
from ulps import FUNCTIONS, bit_patterns, worst_error  # noqa: E402

CHUNK = 2**22
TIMED_SHAPE = (128, 768)
REPEATS = 200


def nanoseconds_per_element(functions, x):
    """The fastest of REPEATS calls of each function; they take turns, as the machine is shared."""
    best = [float("inf")] * len(functions)
    for _ in range(REPEATS):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function(x)
            best[i] = min(best[i], time.perf_counter() - start)
    return [seconds / x.numel() * 1e9 for seconds in best]


def worst_single(name, compiled, stride):
    return max(worst_error(name, x, compiled(x)) for x in bit_patterns(stride, CHUNK))


def worst_double(name, compiled):
    return double_ulps.worst_error(name, compiled(double_ulps.samples(name)[0]))


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("functions", nargs="*")
    arguments = parser.parse_args()
    timed = torch.rand(TIMED_SHAPE) * 4
    if arguments.double:
        timed = timed.double()
    print(f"{'function':10} {'ULP':>6} {'at':>14} {'ns/element':>11} {'PyTorch':>8}")
    weft.config.verify = "off"  # the first call is measured, too
    for name in arguments.functions or FUNCTIONS:
        function = FUNCTIONS[name][0]
        compiled = weft.compile(function)
        if arguments.double:
            worst, where = worst_double(name, compiled)
        else:
            worst, where = worst_single(name, compiled, arguments.stride)
        ours, theirs = nanoseconds_per_element([weft.compile(function), function], timed)
        print(f"{name:10} {worst:6.3f} {where:14.6g} {ours:11.3f} {theirs:8.3f}", flush=True)


if __name__ == "__main__":
    main()
