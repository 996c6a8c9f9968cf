# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that compiles, checks and times candidates: `python -m weft.tune.worker`.

Requests and answers are lines of JSON. A request has:
- `module` and `incumbent`: the candidate and the default, as MLIR of the stage `linalg`;
- `reference`: the formula's plain loops, also as MLIR;
- `schedules` of some of these modules, and `isa`: options of the compiler;
- `inputs` and `results`: [shape, dtype] of each;
- `weights`: the numbers of the inputs that come from memory at each call;
- `rounds` and `threads`.

The answer has `outcome`, `seconds` (the least time of a call), `ratio` (of that time to the
incumbent's) and `note`. Nothing is kept between requests.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from weft import _core, errors
from weft.artifacts import builds
from weft.tune import cores

_PR_SET_PDEATHSIG = 1
_SECONDS = 6e-3  # of a round, for candidate and incumbent each
# Timing ends after so many rounds in a row that found no smaller time, or after so many times the
# requested rounds. A time is smaller if it is so by this share.
_SETTLED, _LONGEST, _LESS = 3, 6, 0.01
_MORE_THAN_CACHES, _MOST_COPIES = 96 << 20, 48

# Relative to the largest value: sums in another order differ by rounding, which grows with length.
_TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-3,
    torch.bfloat16: 3e-2,
    torch.float16: 1e-2,
}


def main() -> None:
    """The only argument is the id of the process that asks; when that ends, this process ends
    too."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    cores.pin(request["threads"])
    torch.set_num_threads(request["threads"])
    try:
        return _measured(request)
    except errors.Error as error:
        return {"outcome": "failed", "note": str(error).partition("\n")[0]}


def _measured(request: dict[str, Any]) -> dict[str, Any]:
    inputs = [_values(shape, dtype) for shape, dtype in request["inputs"]]
    candidate, incumbent, reference = (
        _program(request, name) for name in ("module", "incumbent", "reference")
    )
    expected, found, spare = ([_empty(each) for each in request["results"]] for _ in range(3))
    reference.run(inputs, expected, None)
    candidate.run(inputs, found, None)
    if note := _difference(found, expected, _tolerance(inputs + expected)):
        return {"outcome": "wrong", "note": note}
    sets = _rotated(inputs, request.get("weights", ()))
    mine, theirs = _compared(candidate, incumbent, sets, spare, request["rounds"])
    return {"outcome": "right", "note": "", "seconds": mine, "ratio": mine / theirs}


def _compared(
    candidate: _core.Program,
    incumbent: _core.Program,
    sets: list[list[torch.Tensor]],
    results: list[torch.Tensor],
    rounds: int,
) -> tuple[float, float]:
    """The least seconds of a call of each. They are timed in turns, so that a disturbance affects
    both, for `rounds` rounds, and for more rounds as long as the last ones found a smaller time."""
    least, settled, done = [float("inf")] * 2, 0, 0
    while done < rounds or (settled < _SETTLED and done < _LONGEST * rounds):
        settled += 1
        for number, program in enumerate((candidate, incumbent)):
            seconds = _timed(program, sets, results)
            if seconds < (1 - _LESS) * least[number]:
                settled = 0
            least[number] = min(least[number], seconds)
        done += 1
    return least[0], least[1]


def _rotated(inputs: list[torch.Tensor], weights: Sequence[int]) -> list[list[torch.Tensor]]:
    """The inputs of several calls, so many that the weights have left the cache when they are used
    again."""
    size = sum(inputs[number].nbytes for number in weights)
    copies = min(_MOST_COPIES, -(-_MORE_THAN_CACHES // size)) if size else 1
    sets = [list(inputs)]
    for _ in range(copies - 1):
        changed = list(inputs)
        for number in weights:
            changed[number] = inputs[number].clone()
        sets.append(changed)
    return sets


def _program(request: dict[str, Any], name: str) -> _core.Program:
    schedule = request.get("schedules", {}).get(name, "")
    options = builds.Options(isa=request.get("isa", "native"), schedule=schedule)
    return _core.Program(builds.build_module(request[name], "linalg", options).artifact)


def _values(shape: list[int], dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(shape, generator=generator).to(kind)
    # The values are small, so that they are valid indices as well.
    return torch.randint(0, 2, shape, generator=generator).to(kind)


def _empty(spec: list[Any]) -> torch.Tensor:
    return torch.zeros(spec[0], dtype=getattr(torch, spec[1]))


def _tolerance(tensors: list[torch.Tensor]) -> float:
    """The relative tolerance for the least precise of the floating-point tensors."""
    return max((_TOLERANCES.get(each.dtype, 0.0) for each in tensors), default=0.0)


def _difference(found: list[torch.Tensor], expected: list[torch.Tensor], of_floats: float) -> str:
    """A description of the first difference, or an empty text."""
    for number, (mine, right) in enumerate(zip(found, expected)):
        tolerance = of_floats if right.dtype.is_floating_point else 0.0
        finite = right[right.isfinite()].abs() if right.dtype.is_floating_point else right
        scale = float(finite.max()) if finite.numel() and tolerance else 1.0
        if not torch.allclose(mine, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            worst = (mine.double() - right.double()).abs().max().item()
            return f"result {number} differs from the reference by up to {worst:.3g}"
    return ""


def _timed(
    program: _core.Program, sets: list[list[torch.Tensor]], results: list[torch.Tensor]
) -> float:
    """The least seconds of a call, among as many calls as fit into some milliseconds."""
    least, end = float("inf"), time.perf_counter() + _SECONDS
    for inputs in itertools.chain(sets, itertools.cycle(sets)):
        start = time.perf_counter()
        program.run(inputs, results, None)
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            break
    return least


if __name__ == "__main__":
    main()
